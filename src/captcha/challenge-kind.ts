/** The part that differs between kinds of challenges. All share the rules of who may answer, when and how often. */
import type { Challenge } from 'altcha-lib'
import type { Caller } from '../rules/caller.ts'

/** The owner of a challenge: an answer for one owner is not valid for another. Keys of servers have no origins. */
export type ChallengeOwner = Pick<Caller, 'app' | 'keyId' | 'origins'>

/** The data that a page needs to show a challenge. */
export type Offer =
  | { kind: 'altcha'; challenge: Challenge }
  | { kind: 'turnstile' | 'hcaptcha'; siteKey: string }

export type Reading =
  /** `id` identifies this answer; `aliveMs`: for how long it could be used again. */
  | { kind: 'right' | 'unproven'; id: string; aliveMs: number }
  /** Cannot be an answer to any challenge. */
  | { kind: 'malformed' }
  /** For another key or app, altered, or not solved. */
  | { kind: 'wrong' }
  | { kind: 'expired' }

export interface ChallengeKind {
  /** `factor`: difficulty multiplier, for kinds whose work Postern sets. */
  offer(asked: ChallengeOwner, factor: number): Promise<Offer>
  /** The result, as far as it is known without a call of another server. */
  read(asked: ChallengeOwner, answer: string): Reading
  /** True if an unproven answer is right. Throws Unavailable if that is not known now. */
  prove(asked: ChallengeOwner, answer: string): Promise<boolean>
  close(): void
}
