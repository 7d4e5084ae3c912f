import { z } from 'zod'
import { parseDurationMs } from '../base/durations.ts'

/** A setting such as `500ms` or `30s`; comes out in milliseconds. */
export const duration = z.string().transform((text, context) => {
  const durationMs = parseDurationMs(text)
  if (durationMs !== undefined) return durationMs
  context.addIssue({ code: 'custom', message: 'not a duration such as 500ms, 2s, 1m' })
  return z.NEVER
})
