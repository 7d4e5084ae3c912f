/** The answers of the code store about a guess and a look. */
export type GuessResult =
  /** `onPass`: the data that `remember` stored with the code. */
  | { result: 'passed'; noticeId: string; onPass?: string }
  /** `noticeId`: the notice whose code is out of tries now. */
  | { result: 'mismatch'; triesLeft: number; noticeId?: string }
  | Gone

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
}

/** `answer`: the negative number of the script. */
export const goneBy = (answer: number): Gone => ({
  result: 'gone',
  reason: goneReasons[answer] ?? 'expired',
})
