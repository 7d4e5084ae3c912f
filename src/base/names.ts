/** The spelling of names in requests, in the policy file and of keys. */
import { z } from 'zod'

const message = 'must be a short lower-case name'
export const shortName = z.string().regex(/^[a-z][a-z0-9_-]{0,31}$/, message)
export const appName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, message)

/** The app of an operator who sees every app. */
export const everyApp = '*'

/** The scene of a code whose request names none. */
export const defaultScene = 'default'
