/** The answers of the code store. */
import type { Channel } from '../base/channel.ts'
import type { CodeId, NoticeId } from '../base/ids.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Answer } from './code-steps.ts'

export type SettleResult =
  /** This code passes. */
  | 'current'
  /** A newer code has replaced it, or it was used, or support ended it. */
  | 'gone'
  /** The owner has no code at all, because Redis lost it. */
  | 'lost'

export type GuessResult =
  | ({ result: 'passed' } & EndedCode)
  | Repeated
  /** `noticeId`: the notice whose code is out of tries now. For several notices it is `codeId` too. */
  | { result: 'mismatch'; triesLeft: number; noticeId?: string; codeId?: CodeId }
  | Gone

/** The check repeats one that passed. `proof`: what that check stored. Nothing follows from it. */
export interface Repeated {
  result: 'repeated'
  noticeId: string
  proof: string
  /** Only for a code for several notices. */
  channel?: Channel
}

/** For checks with an id. A repeat by the same key gets this proof. */
export interface RepeatableGuess {
  keyId: string
  proof: string
}

/** `onPass`: the data that `remember` stored with the code. `codeId`, `channel`: of a code for several notices. */
export interface EndedCode {
  noticeId: NoticeId
  onPass?: string
  codeId?: CodeId
  channel?: Channel
}

export interface Gone {
  result: 'gone'
  reason: GoneReason
}

/**
 * Why no code was compared. `used`: it passed before, or was ended. `expired`: it expired, a newer one replaced it, or
 * none was sent. HTTP answers do not tell these apart.
 */
export type GoneReason = 'expired' | 'tries' | 'used'

/** The reasons, by the numbers that the script returns. */
const goneReasons: Readonly<Record<number, GoneReason>> = {
  [-1]: 'expired',
  [-2]: 'tries',
  [-3]: 'used',
}

export interface LiveCode {
  result: 'live'
  /** For strangers, and for known browsers. */
  triesLeft: number
  knownTriesLeft: number
  expiresAt: Date
  /** Characters of the code. */
  length: number
  /** Only for a code for several notices: its id, and the channels of the notices that were sent. */
  shared?: { codeId: CodeId; channels: readonly Channel[] }
}

/** The current code that an answer describes. */
export function liveBy(answer: Answer): LiveCode | undefined {
  if (typeof answer === 'number') return undefined
  const [, facts, codeId = '', ...channels] = typeof answer === 'string' ? ['', answer] : answer
  const [triesLeft = 0, endsMs = 0, length = 0, known = 0] = String(facts).split(' ').map(Number)
  const tries = { triesLeft, knownTriesLeft: known }
  const live: LiveCode = { result: 'live', ...tries, expiresAt: new Date(endsMs), length }
  return codeId === ''
    ? live
    : { ...live, shared: { codeId: String(codeId), channels: channels as Channel[] } }
}

/** `answer`: the negative number of the script. */
export const goneBy = (answer: number): Gone => ({
  result: 'gone',
  reason: goneReasons[answer] ?? 'expired',
})

/** Readers of the answers that contain sealed data. It was sealed by the secret that also named the key. */
export function readAnswers(secrets: Pick<Secrets, 'unseal'>) {
  const unseal = (sealed: unknown, id: string) =>
    secrets.unseal(Buffer.from(String(sealed), 'base64'), id)
  return {
    /** The code that a step has ended, or undefined. */
    endedBy(answer: Answer): EndedCode | undefined {
      if (typeof answer === 'string') return { noticeId: answer }
      if (typeof answer === 'number') return undefined
      const [noticeId, sealed, codeId, channel] = answer as [string, string, string?, Channel?]
      const onPass = sealed === '' ? {} : { onPass: unseal(sealed, noticeId) }
      return { noticeId, ...onPass, ...(codeId && channel ? { codeId, channel } : {}) }
    },

    repeatedBy(answer: Answer, noticeId: string): Repeated | undefined {
      if (typeof answer !== 'object' || answer[0] !== 1) return undefined
      const channel = answer[2] as Channel | undefined
      const proof = unseal(answer[1], noticeId)
      return { result: 'repeated', noticeId, proof, ...(channel ? { channel } : {}) }
    },
  }
}
