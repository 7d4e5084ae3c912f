/** Operates the code field as a person would. Uses only parts of the field that docs/code-field.md describes. */
import type { Channel, Problem, Sent } from '../client.ts'
import { nudge } from './elements.ts'

type Told =
  | { type: 'sent'; detail: Sent }
  | { type: 'passed' }
  | { type: 'refused'; detail: { problem: Problem } }

export type Hand = ReturnType<typeof createHand>

export function createHand(field: HTMLElement & { reset(): void }) {
  const input = (name: string) => field.querySelector(`.postern-${name}`) as HTMLInputElement
  const write = (element: HTMLInputElement, value: string) => {
    element.value = value
    element.dispatchEvent(new Event('input', { bubbles: true }))
  }
  const told = () =>
    new Promise<Told>((resolve) => {
      const done = new AbortController()
      for (const type of ['sent', 'passed', 'refused']) {
        const tell = (event: Event) => {
          done.abort()
          resolve({ type, detail: (event as CustomEvent).detail } as Told)
        }
        field.addEventListener(type, tell, { signal: done.signal })
      }
    })
  const channelShown = (): Channel => (input('input').type === 'tel' ? 'sms' : 'email')

  return {
    /** Fills in the number or address of the visitor if the field is empty. */
    suggest(of: Readonly<Partial<Record<Channel, string>>>): void {
      if (input('input')?.value === '') input('input').value = of[channelShown()] ?? ''
    },

    /** Resets the field and requests a code for this address. */
    ask(to: string, workflow?: string): Promise<Told> {
      this.reset(workflow)
      write(input('input'), to)
      const answer = told()
      input('button').click()
      return answer
    },

    /** Empties the field. `workflow`: its codes have several ways. */
    reset(workflow?: string): void {
      if (workflow) field.setAttribute('workflow', workflow)
      else field.removeAttribute('workflow')
      field.reset()
    },

    /** Types a whole code. The field checks it at the last digit. */
    type(code: string): Promise<Told> {
      const answer = told()
      write(input('code'), code)
      return answer
    },

    /** Shows an address in the field, and requests no code. */
    show(to: string): void {
      input('input').value = to
    },

    /** Presses the button. */
    press(): void {
      nudge(input('button'), { scale: [1, 0.95, 1] })
    },

    /** Whether the field waits for a code. */
    wantsCode: () => field.querySelector('[data-step=code]') !== null && !input('code').readOnly,
    address: () => input('input').value,
    channel: channelShown,
  }
}
