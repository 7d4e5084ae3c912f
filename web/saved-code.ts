/**
 * State that a reload must not lose: the code that was sent, and how long to wait. It contains the address, so it is kept
 * in the session storage of the tab and ends with the tab.
 */
import type { Channel } from './channels.ts'
import type { Way } from './client.ts'

export interface SentCode {
  /** Undefined while a later send has no answer: perhaps that send has replaced the code. */
  id?: string | undefined
  /** The address of the request. */
  to: string
  /** The country by which a number without calling code was read. */
  country?: string | undefined
  /** The address, masked by the service. */
  shownTo: string
  codeLength: number
  expiresAtMs: number
  /** How far the clock of this browser is ahead. */
  aheadMs: number
  /** The latest way of a verification with several. */
  way?: Way | undefined
}

/** End of a wait or of a lock, for one address of each channel. */
export type Held = Partial<Record<Channel, { to: string; untilMs: number; forMs: number }>>

export interface Saved {
  channel: Channel
  isSwitched?: boolean | undefined
  sent?: SentCode | undefined
  /** The code that the person left at the code step. */
  left?: SentCode | undefined
  waits: Held
  locks: Held
}

/** Leaves out an expired code. */
export function readSaved(name: string): Saved | undefined {
  try {
    const saved = JSON.parse(sessionStorage.getItem(name) ?? '') as Saved
    const isOver = saved.sent && saved.sent.expiresAtMs <= Date.now()
    return isOver ? { ...saved, sent: undefined } : saved
  } catch {
    // Nothing is stored, or the browser forbids storage. Then the field is empty after a reload.
    return undefined
  }
}

export function writeSaved(name: string, saved?: Saved): void {
  try {
    if (saved) sessionStorage.setItem(name, JSON.stringify(saved))
    else sessionStorage.removeItem(name)
  } catch {}
}

/** The field that asked for a code, by the code's id, for the life of the code. It has no address, so it may be in all tabs. */
type AllAsked = Record<string, { by: string; untilMs: number }>

const askedName = 'postern asked'

function readAsked(): AllAsked {
  try {
    const all: AllAsked = JSON.parse(localStorage.getItem(askedName) ?? '{}')
    return Object.fromEntries(Object.entries(all).filter(([, { untilMs }]) => untilMs > Date.now()))
  } catch {
    return {}
  }
}

export const readAskedBy = (id: string): string | undefined => readAsked()[id]?.by

export function writeAsked(id: string, asked: AllAsked[string]): void {
  try {
    localStorage.setItem(askedName, JSON.stringify({ ...readAsked(), [id]: asked }))
  } catch {}
}
