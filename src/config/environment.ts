import { z } from 'zod'
import type { LogLevel } from '../base/log.ts'
import { readPostgresAddress } from '../base/postgres-address.ts'
import { findRedisMistake } from '../base/redis-address.ts'

const logLevels = [
  'fatal',
  'error',
  'warn',
  'info',
  'debug',
  'silent',
] as const satisfies LogLevel[]

function wholeNumber(max: number) {
  const problem = `must be a whole number from 0 to ${max}`
  return z.coerce.number(problem).int(problem).min(0, problem).max(max, problem)
}

const secret = z
  .string()
  .refine((text) => Buffer.byteLength(text) >= 32, 'must have at least 32 bytes')

const redisUrl = z
  .string()
  .regex(
    /^rediss?(\+cluster|\+sentinel)?:\/\/[^/?]/,
    'must begin with redis://, redis+cluster:// or redis+sentinel:// (rediss for TLS)',
  )
  .refine(
    (url) => !url.includes('+sentinel:') || /^[^/]*\/\/[^/]+\/[^/?]/.test(url),
    'must have the name of the master after the sentinels: redis+sentinel://h:p,h:p/name',
  )
  .superRefine((url, { issues, addIssue }) => {
    const message = issues.length === 0 && findRedisMistake(url)
    if (message) addIssue(message)
  })

const environmentSchema = z.object({
  PORT: wholeNumber(65_535).default(3000),
  HOST: z.string().default('0.0.0.0'),
  ADMIN_PORT: wholeNumber(65_535).default(9100),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, { error: 'must be a postgresql:// address', abort: true })
    .refine(
      (url) => readPostgresAddress(url) !== undefined,
      'is not an address of one server; percent-encode # / ? and @ in the password',
    ),
  REDIS_URL: redisUrl,
  POSTERN_CONFIG: z.string().default('./postern.yaml'),
  SECRET: secret,
  SECRET_PREVIOUS: secret.optional(),
  CA_FILE: z.string().optional(),
  BOOTSTRAP_SECRET_KEY: z
    .string()
    .regex(/^[\x21-\x7e]{16,200}$/, 'must have 16 to 200 visible ASCII characters')
    .optional(),
  DRAIN_SECONDS: wholeNumber(60).default(0),
  TRUST_PROXY_HOPS: wholeNumber(10).default(0),
  LOG_LEVEL: z.enum(logLevels, `must be one of ${logLevels.join(', ')}`).default('info'),
  POSTERN_DATA: z.string().default('./.postern'),
})

export type Environment = z.infer<typeof environmentSchema>

/** Every variable that Postern reads, in the order of the schema. A test compares `.env.example` with it. */
export const environmentNames = Object.keys(environmentSchema.shape)

/** Processes derive keys from the whole text. */
const kept = ['SECRET', 'SECRET_PREVIOUS']

/**
 * Reads the environment. An empty value counts as not set. Secrets of Kubernetes that were made from files end with a line
 * break, which is no part of a value. Returns every problem, not only the first.
 */
export function readEnvironment(
  env: Readonly<Record<string, string | undefined>>,
): { ok: true; environment: Environment } | { ok: false; problems: string[] } {
  const given = Object.fromEntries(
    environmentNames.map((name) => {
      const text = kept.includes(name) ? env[name] : env[name]?.trim()
      return [name, text === '' ? undefined : text]
    }),
  )
  const parsed = environmentSchema.safeParse(given)
  if (parsed.success) return { ok: true, environment: Object.freeze(parsed.data) }
  return {
    ok: false,
    problems: parsed.error.issues.map((issue) => {
      const name = String(issue.path[0])
      return given[name] === undefined ? `${name} is not set` : `${name}: ${issue.message}`
    }),
  }
}
