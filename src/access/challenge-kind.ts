/** What every kind of challenge does; who may answer when, and how often, is the same for all. */
import type { Challenge } from 'altcha-lib'

/** Who is asked: an answer for one of these opens nothing for another. */
export interface Asked {
  app: string
  keyId: string
  /** Of the pages that may use the key; empty for a key that belongs in no page. */
  origins: readonly string[]
}

/** What a page needs to have its visitor solve it. */
export type Offer =
  | { kind: 'altcha'; challenge: Challenge }
  | { kind: 'turnstile' | 'hcaptcha'; siteKey: string }

export type Reading =
  /** `id` tells this answer from every other; `aliveMs`: how long it could be given again. */
  | { kind: 'right' | 'unproven'; id: string; aliveMs: number }
  /** Nothing that a challenge could have led to. */
  | { kind: 'malformed' }
  /** Of another key or app, altered, or not solved. */
  | { kind: 'wrong' }
  | { kind: 'expired' }

export interface ChallengeKind {
  /** `factor`: how many times the usual work, where the work is ours to set. */
  offer(asked: Asked, factor: number): Promise<Offer>
  /** What can be said of an answer without asking anybody. */
  read(asked: Asked, answer: string): Reading
  /** Whether an unproven answer is right. Throws Unavailable when that can't be said now. */
  prove(asked: Asked, answer: string): Promise<boolean>
  close(): void
}
