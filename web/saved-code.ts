/**
 * What a reload must not lose: which code was sent, and how long to wait. It lies in the tab's own session and
 * goes with it, because it has the address in it.
 */
import type { Channel } from './client.ts'

export interface SentCode {
  id: string
  /** As it was typed. */
  to: string
  /** As the service masks it. */
  shownTo: string
  codeLength: number
  expiresAtMs: number
}

/** Until when a send to that address would be refused. */
export type Waits = Partial<Record<Channel, { to: string; untilMs: number }>>

export interface Saved {
  channel: Channel
  sent?: SentCode | undefined
  waits: Waits
}

export function createSavedCode(name: string) {
  return {
    read(): Saved | undefined {
      try {
        const saved = JSON.parse(sessionStorage.getItem(name) ?? '') as Saved
        const isAlive = saved.sent && saved.sent.expiresAtMs > Date.now()
        return isAlive ? saved : { ...saved, sent: undefined }
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
