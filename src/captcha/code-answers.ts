/** The answers of the code store. */
export type SettleResult =
  /** This code passes. */
  | 'current'
  /** A newer code has replaced it, or it was used, or support ended it. */
  | 'gone'
  /** The owner has no code at all, because Redis lost it. */
  | 'lost'

export type GuessResult =
  | ({ result: 'passed' } & EndedCode)
  /** `noticeId`: the notice whose code is out of tries now. */
  | { result: 'mismatch'; triesLeft: number; noticeId?: string }
  | Gone

/** `onPass`: the data that `remember` stored with the code. */
export interface EndedCode {
  noticeId: string
  onPass?: string
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
  triesLeft: number
  expiresAt: Date
  /** Characters of the code. */
  length: number
}

/** `answer`: the negative number of the script. */
export const goneBy = (answer: number): Gone => ({
  result: 'gone',
  reason: goneReasons[answer] ?? 'expired',
})
