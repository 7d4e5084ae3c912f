import { z } from 'zod'
import { channels } from '../base/channel.ts'
import { shortName } from '../base/names.ts'

/** The channels of each workflow. */
export const workflows = z
  .record(
    shortName,
    z
      .array(z.enum(channels))
      .min(1)
      .refine((list) => new Set(list).size === list.length, 'must have each channel once'),
  )
  .default({})
