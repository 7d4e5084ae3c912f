/** The events of the field and their `detail`, for pages in TypeScript (docs/code-field.md). */
import type { Channel, Passed, Problem, Sent } from './client.ts'

export interface FieldEvents {
  sent: CustomEvent<Pick<Sent, 'id' | 'channel' | 'to' | 'expiresAt' | 'resendAt'>>
  passed: CustomEvent<Omit<Passed, 'verified'> & { channel: Channel; to: string }>
  refused: CustomEvent<{ during: 'send' | 'check'; channel: Channel; problem: Problem }>
  challenge: CustomEvent<{
    kind: 'turnstile' | 'hcaptcha'
    siteKey: string
    container: HTMLElement
  }>
}

export type Tell = <Type extends keyof FieldEvents>(
  type: Type,
  detail: FieldEvents[Type]['detail'],
) => void

type Events = FieldEvents & Omit<HTMLElementEventMap, keyof FieldEvents>
type Listener = EventListenerOrEventListenerObject

export interface ElementWithEvents extends HTMLElement {
  addEventListener<Type extends keyof Events>(
    type: Type,
    listener: (this: HTMLElement, event: Events[Type]) => unknown,
    options?: boolean | AddEventListenerOptions,
  ): void
  addEventListener(
    type: string,
    listener: Listener,
    options?: boolean | AddEventListenerOptions,
  ): void
}
