/**
 * State that a reload must not lose: the code that was sent, and how long to wait. It contains the address, so it is kept
 * in the session storage of the tab and ends with the tab.
 */
import type { Channel } from './client.ts'

export interface SentCode {
  id: string
  /** The address of the request. */
  to: string
  /** The address, masked by the service. */
  shownTo: string
  codeLength: number
  expiresAtMs: number
}

/** End of a wait or of a lock, for one address of each channel. */
export type Held = Partial<Record<Channel, { to: string; untilMs: number }>>

export interface Saved {
  channel: Channel
  sent?: SentCode | undefined
  waits: Held
  locks: Held
}

export function createSavedCode(name: string) {
  return {
    /** Leaves out an expired code. */
    read(): Saved | undefined {
      try {
        const {
          channel,
          sent,
          waits = {},
          locks = {},
        } = JSON.parse(sessionStorage.getItem(name) ?? '') as Saved
        const isOver = sent && sent.expiresAtMs <= Date.now()
        return { channel, sent: isOver ? undefined : sent, waits, locks }
      } catch {
        // Nothing is stored, or the browser forbids storage. Then the field is empty after a reload.
        return undefined
      }
    },
    write(saved: Saved | undefined): void {
      try {
        if (saved) sessionStorage.setItem(name, JSON.stringify(saved))
        else sessionStorage.removeItem(name)
      } catch {}
    },
  }
}
