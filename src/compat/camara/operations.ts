/** The two operations of CAMARA's definition. */
import { z } from 'zod'
import { readFields, type ShownFieldError, shownFieldErrors } from '../../base/field-errors.ts'
import { words } from '../../base/words.ts'
import type { PosternCalls } from '../../http/in-process.ts'
import type { Answer } from '../../http/problem.ts'
import { fault, tooMany, unavailable } from './faults.ts'
import { messageParams } from './message.ts'

/** The names under which the façade sends. */
export const own = {
  policy: 'camara',
  rule: 'camara-max-codes',
  template: 'camara',
  scene: 'camara',
}

/** The caller: the app of a secret key. */
export interface Caller {
  app: string
  keyId: string
}

const maxMessageLength = 160
const { fields } = words.en

const sendBody = z.object({
  phoneNumber: z.string().regex(/^\+[1-9][0-9]{4,14}$/, fields.internationalNumber),
  message: z
    .string()
    // By characters: `max` counts an emoji twice.
    .check(({ value, issues }) => {
      const isTooLong = [...value].length > maxMessageLength
      const limit = { origin: 'string', maximum: maxMessageLength } as const
      if (isTooLong) issues.push({ code: 'too_big', ...limit, input: value })
    })
    .refine((text) => text.includes('{{code}}'), fields.noPlaceholder)
    .transform((text, context) => {
      const params = messageParams(text)
      if (params) return params
      context.addIssue({ code: 'custom', message: fields.controlCharacter })
      return z.NEVER
    }),
})

const validateBody = z.object({
  authenticationId: z.string().min(1).max(36),
  code: z.string().min(1).max(10),
})

export type Operation = (caller: Caller, body: unknown) => Promise<Answer>

/** Other members of a body are allowed by the definition. */
const reading =
  <Body>(schema: z.ZodType<Body>, run: (caller: Caller, body: Body) => Promise<Answer>) =>
  async (caller: Caller, body: unknown): Promise<Answer> => {
    const read = readFields(schema, body)
    return 'data' in read ? run(caller, read.data) : invalidArgument(shownFieldErrors(read.errors))
  }

const invalidArgument = ([first]: readonly ShownFieldError[]) =>
  fault('INVALID_ARGUMENT', `${first?.path || 'The body'} ${first?.message}.`)

export function createOperations(postern: PosternCalls): { send: Operation; validate: Operation } {
  return {
    send: reading(sendBody, async ({ app, keyId }, { phoneNumber, message: params }) => {
      const { policy, template, scene } = own
      const asked = { app, keyId, channel: 'sms', to: phoneNumber, scene, policy } as const
      const sent = await postern.sendCaptcha({ ...asked, template, params })
      return sent.outcome === 'accepted'
        ? { status: 200, body: { authenticationId: sent.id } }
        : refusalOf(sent)
    }),

    validate: reading(validateBody, async ({ app, keyId }, { authenticationId: id, code }) => {
      const found = await postern.findNotice({ app, id })
      if (found.outcome === 'unavailable') return unavailable()
      // A test recipient has no notice.
      const notice = found.outcome === 'found' ? found.notice : undefined
      const { scene } = own
      if (notice && notice.scene !== scene) return fault('NOT_FOUND')
      // The row keeps the end of a code longer than Redis, and a lock must not hide it.
      if (notice?.codeEnd) return notice.codeEnd === 'tries' ? failed() : expired()
      const checked = await postern.checkCaptcha({ app, keyId, id, scene, code, anyForm: true })
      switch (checked.outcome) {
        case 'passed':
          return { status: 204 }
        case 'code_mismatch':
          return checked.triesLeft > 0 ? fault('ONE_TIME_PASSWORD_SMS.INVALID_OTP') : failed()
        case 'code_gone':
          if (!notice && checked.reason === 'unknown') return fault('NOT_FOUND')
          return checked.reason === 'tries' ? failed() : expired()
        case 'limited':
        case 'locked':
          return notice && Date.parse(notice.expiresAt) < postern.nowMs()
            ? expired()
            : tooMany(checked.retryAfterMs)
        case 'unavailable':
          return unavailable()
        case 'invalid_request':
          return fault('INVALID_ARGUMENT')
        // The policy file has changed since the code was sent.
        default:
          return expired()
      }
    }),
  }
}

const failed = () => fault('ONE_TIME_PASSWORD_SMS.VERIFICATION_FAILED')
const expired = () => fault('ONE_TIME_PASSWORD_SMS.VERIFICATION_EXPIRED')

type NotSent = Exclude<Awaited<ReturnType<PosternCalls['sendCaptcha']>>, { outcome: 'accepted' }>

function refusalOf(refused: NotSent): Answer {
  switch (refused.outcome) {
    case 'limited':
    case 'locked':
      return refused.rule === own.rule
        ? fault('ONE_TIME_PASSWORD_SMS.MAX_OTP_CODES_EXCEEDED')
        : tooMany(refused.retryAfterMs)
    // The form of the number is right, so this is a landline, a premium number, or not in use.
    case 'invalid_recipient':
      return fault('ONE_TIME_PASSWORD_SMS.PHONE_NUMBER_NOT_ALLOWED')
    case 'destination_not_allowed':
      if (refused.reason === 'country') return fault('NOT_FOUND', 'This network is not served.')
      return refused.reason === 'refused'
        ? fault('ONE_TIME_PASSWORD_SMS.PHONE_NUMBER_BLOCKED')
        : fault('ONE_TIME_PASSWORD_SMS.PHONE_NUMBER_NOT_ALLOWED')
    case 'invalid_request': {
      const [first] = refused.errors
      if (first?.path === 'channel') return fault('NOT_FOUND', 'This network is not served.')
      return invalidArgument(refused.errors)
    }
    case 'unavailable':
      return unavailable()
    default:
      throw new Error(`no answer is known for ${refused.outcome}`)
  }
}
