/** Routes of the limiter for other services: any policy of the policy file, and login attempts. */
import { z } from 'zod'
import { limitableAddress, wideAddress } from '../base/limitable-address.ts'
import { Problem } from '../base/problems.ts'
import { words } from '../base/words.ts'
import { InvalidPermits, type Limiter, MissingField, type Policies } from '../limiter/index.ts'
import { type LoginThrottle, subjectOfApp } from '../rules/login-throttle.ts'
import { limitedBy } from '../rules/refused.ts'
import { invalid } from './problem.ts'
import { defineRoute, type Route } from './route.ts'
import { exactNumber, hasAtMost, ip, plainText } from './schemas.ts'

const maxFields = 32

export const acquireBody = z
  .strictObject({
    fields: z
      .record(
        z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]{0,31}$/, words.en.fields.variableName),
        z.union([plainText(320), exactNumber]),
      )
      .check(hasAtMost(maxFields))
      .refine((fields) => !('app' in fields), words.en.fields.ownApp)
      .meta({ description: "Values for the fields in the rules' keys." }),
    permits: z
      .int()
      .min(1)
      .default(1)
      .meta({ description: 'The number of uses to take from every rule.' }),
  })
  .meta({ id: 'Acquire', examples: [{ fields: { subject: 'report-7' } }] })

export const attemptBody = z
  .strictObject({
    policy: z.string().min(1).max(64).meta({ description: 'A policy of the policy file.' }),
    subject: plainText(320).min(1).meta({ description: 'The account, as the caller names it.' }),
    ip: ip.optional(),
  })
  .meta({ id: 'Attempt', examples: [{ policy: 'login', subject: 'ada' }] })

const permitsTaken = z
  .object({
    allowed: z.literal(true),
    remaining: z
      .array(z.object({ rule: z.string(), window: z.string(), left: z.int() }))
      .meta({ description: 'The remaining uses in every window of every rule.' }),
  })
  .meta({ id: 'PermitsTaken' })

const tryAllowed = z
  .object({
    allowed: z.literal(true),
    triesLeft: z.int().meta({ description: 'Tries left before the lock.' }),
  })
  .meta({ id: 'AttemptAllowed' })

export function limitRoutes(deps: {
  loginThrottle: LoginThrottle
  limiter: Limiter
  policies: () => Policies
}): Route[] {
  const { loginThrottle, limiter, policies } = deps
  const hasPolicy = (name: string) => Object.hasOwn(policies(), name)

  function checkPolicy(name: string): void {
    if (!hasPolicy(name)) throw invalid('policy', 'noPolicy')
  }

  return [
    defineRoute({
      method: 'post',
      path: '/v1/limits/:policy/acquire',
      name: 'acquire',
      summary: 'Take uses from every rule of a policy, or from none.',
      access: 'secret',
      body: acquireBody,
      answers: { 200: { description: 'Taken.', schema: permitsTaken } },
      problems: ['not_found', 'limited', 'locked'],
      async run({ caller: { app }, params, body }) {
        const policy = params.policy ?? ''
        if (!hasPolicy(policy)) throw new Problem('not_found')
        const { fields, permits } = body
        const decision = await withFieldProblems('fields.', () =>
          limiter.acquire(
            policy,
            fieldsOfApp(app, fields),
            // Secret keys never get a challenge.
            { permits, isSolved: true },
          ),
        )
        if (!decision.admitted) return limitedBy(policy, decision)
        const remaining = decision.remaining.map(({ rule, window, left }) => ({
          rule,
          window,
          left,
        }))
        return { status: 200, body: { allowed: true, remaining } }
      },
    }),

    defineRoute({
      method: 'post',
      path: '/v1/attempts',
      name: 'beginAttempt',
      summary: 'Count a login attempt. Call it before you compare the password.',
      access: 'secret',
      body: attemptBody,
      answers: {
        200: { description: 'The attempt is allowed and counted.', schema: tryAllowed },
      },
      problems: ['limited', 'locked'],
      async run({ caller: { app }, body }) {
        const { policy, subject, ip } = body
        checkPolicy(policy)
        const outcome = await withFieldProblems('', () =>
          loginThrottle.begin({ policy, app, subject, ip }),
        )
        if (!outcome.allowed) return limitedBy(policy, outcome.refusal)
        return { status: 200, body: outcome }
      },
    }),

    defineRoute({
      method: 'post',
      path: '/v1/attempts/clear',
      name: 'clearAttempts',
      summary: 'Forget the attempts and lift the lock, after a successful login or by support.',
      access: 'secret',
      body: attemptBody,
      answers: { 204: { description: 'Cleared.' } },
      problems: [],
      async run({ caller: { app }, body }) {
        const { policy, subject, ip } = body
        checkPolicy(policy)
        const isCleared = await withFieldProblems('', () =>
          loginThrottle.clear({ policy, app, subject, ip }),
        )
        if (!isCleared) throw invalid('policy', 'noLockout')
        return { status: 204 }
      },
    }),
  ]
}

/** As for login attempts, subjects belong to the app, and every spelling of an address is one. */
function fieldsOfApp(app: string, fields: Readonly<Record<string, string | number>>) {
  const { subject, ip } = fields
  return {
    ...fields,
    ...(subject === undefined ? {} : { subject: subjectOfApp(app, String(subject)) }),
    ...(typeof ip === 'string' ? addressFields(limitableAddress(ip) ?? ip) : {}),
    app,
  }
}

const addressFields = (ip: string) => ({ ip, ipWide: wideAddress(ip) })

/** Turns the limiter's error about a field into a problem that names the field. */
async function withFieldProblems<Result>(
  place: string,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof MissingField) {
      throw invalid(`${place}${error.field}`, 'neededByRule', { rule: error.rule })
    }
    if (error instanceof InvalidPermits) {
      const { field, most } = error
      const path = field ? `${place}${field}` : 'permits'
      throw most === undefined
        ? invalid(path, 'permits')
        : invalid(path, 'permitsAtOnce', { n: most })
    }
    throw error
  }
}
