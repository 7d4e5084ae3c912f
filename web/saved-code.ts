/**
 * What a reload must not lose: which code was sent, and how long to wait. It lies in the tab's own session and
 * goes with it, because it has the address in it.
 */
import type { Channel } from './client.ts'

export interface SentCode {
  id: string
  /** As it was asked for. */
  to: string
  /** As the service masks it. */
  shownTo: string
  codeLength: number
  expiresAtMs: number
}

/** Until when something holds for an address. */
export type Held = Partial<Record<Channel, { to: string; untilMs: number }>>

export interface Saved {
  channel: Channel
  sent?: SentCode | undefined
  waits: Held
  locks: Held
}

export function createSavedCode(name: string) {
  return {
    /** A code whose life is over is left out. */
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
        // Nothing there, or storage is forbidden: then a reload begins anew.
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
