import { z } from 'zod'
import { duration } from '../base/durations.ts'
import { defaultSuppressFor } from '../base/suppression.ts'

const durationOrOff = z.union([z.literal(false), duration], {
  error: 'must be a duration such as 7d, or false',
})

/** `recipients.suppress`. */
export const suppress = z
  .strictObject({
    bounced: durationOrOff.default(defaultSuppressFor.bounced),
    complained: durationOrOff.default(defaultSuppressFor.complained),
    optedOut: durationOrOff.default(defaultSuppressFor.optedOut),
  })
  .prefault({})
