/** Why a recipient gets no messages: what a provider reported. src/notice/suppressions.ts stores these. */
export const suppressionReasons = ['bounced', 'complained', 'opted_out'] as const
export type SuppressionReason = (typeof suppressionReasons)[number]

/** Milliseconds of a suppression after its report. false: reports of this kind have no effect. */
export interface SuppressFor {
  readonly bounced: number | false
  readonly complained: number | false
  readonly optedOut: number | false
}

const dayMs = 86_400_000

export const defaultSuppressFor = {
  bounced: 7 * dayMs,
  complained: 180 * dayMs,
  optedOut: 180 * dayMs,
} as const satisfies SuppressFor
