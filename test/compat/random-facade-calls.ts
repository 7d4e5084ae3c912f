/**
 * The calls of the façades for random requests. The documents of Twilio and CAMARA are in shared/foreign. Without
 * them, those calls are left out. The errors of Twilio and the answers of hooks are from Postern's guides.
 */
import { createHmac, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'
import type { Answer, Call } from '../http/random-calls.ts'
import type { JsonSchema } from '../http/schema-values.ts'
import { findForeign } from '../tools/foreign.ts'
import type { Postern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { openForeignDocument } from './foreign-document.ts'

const va = `VA${'a'.repeat(32)}`
const account = `AC${'0'.repeat(32)}`
const webhookSecret = `whsec_${Buffer.from('a secret of the random hooks, 32').toString('base64')}`
const zitadelKey = 'a signing key of Zitadel'
const bearer = 'a token that Logto sends'
const people = ['+8613800138000', '+4915112345678', '+12025550123']
const mails = ['ada@example.com', 'bob@example.org']

export const compat = {
  twilioVerify: { services: { [va]: { app: 'default', scene: 'signup' } } },
  camara: { maxCodes: 3, window: '10s' },
  hooks: {
    supabase: { kind: 'supabase', secret: webhookSecret, app: 'web' },
    zitadel: { kind: 'zitadel', secret: zitadelKey, app: 'web' },
    logto: { kind: 'logto', secret: bearer, app: 'web' },
  },
}

/** `problemMistake`: returns the fault of a problem of Postern. */
export async function facadeCalls(
  postern: Postern,
  problemMistake: (text: string) => string | undefined,
): Promise<Call[]> {
  const page = await publishableKey(postern.database)
  return [
    ...(await twilioCalls(postern, page)),
    ...(await camaraCalls(postern, page)),
    ...hookCalls(problemMistake),
  ]
}

/** The calls of a document, without the parts that differ between documents. */
function callsOf({ document, resolve }: ReturnType<typeof openForeignDocument>, base = '') {
  return Object.entries<Record<string, never>>(document.paths).flatMap(([path, methods]) =>
    (['get', 'post'] as const).flatMap((method) => {
      const operation = methods[method] as
        | { requestBody?: { content: object }; parameters?: object[]; responses: object }
        | undefined
      if (!operation) return []
      const { requestBody, parameters = [], responses } = operation
      const [content] = Object.values(requestBody?.content ?? {})
      const given = parameters.map((one) => ('$ref' in one ? resolve(String(one.$ref)) : one))
      return {
        path: base + path,
        method,
        resolve,
        parameters: given.filter((one) => one.in !== 'header'),
        body: content?.schema as JsonSchema | undefined,
        /** The schema of an answer; undefined for a status that the document does not have. */
        promised: (status: number) => {
          const answer = (responses as Record<number, { $ref?: string; content?: object }>)[status]
          const found = answer?.$ref ? resolve(answer.$ref) : answer
          return found && { schema: found.content?.['application/json']?.schema }
        },
      }
    }),
  )
}

async function twilioCalls(postern: Postern, page: string): Promise<Call[]> {
  const { path, isMissing } = findForeign('twilio/twilio_verify_v2.part.json')
  if (isMissing) return []
  const twilio = openForeignDocument(path)
  const guide = readFileSync(join(repositoryRoot, 'docs/guides/twilio-verify.md'), 'utf8')
  const errors = new Map(
    [...guide.matchAll(/^\| (\d{5}) \| (\d{3}) \|/gm)].map(([, code, status]) => [
      Number(code),
      Number(status),
    ]),
  )
  const faultIn = (schema: object | undefined, { status, type, text }: Answer) => {
    if (type !== 'application/json') return `is ${type}`
    const body = JSON.parse(text)
    if (schema) return twilio.mistakesOf(schema, body)
    const { code, message, more_info: moreInfo, status: told, ...more } = body
    const isRight = errors.get(code) === status && told === status && message && moreInfo
    return isRight && Object.keys(more).length === 0 ? undefined : 'is not an error of the guide'
  }
  const basic = (key: string, user = account) => ({
    authorization: `Basic ${Buffer.from(`${user}:${key}`).toString('base64')}`,
  })
  const sent = await fetch(`${postern.url}/v2/Services/${va}/Verifications`, {
    method: 'POST',
    headers: basic(postern.key),
    body: new URLSearchParams({ To: people[0] as string, Channel: 'sms', CustomCode: '97531' }),
  })
  const { sid } = (await sent.json()) as { sid: string }
  const right = () => basic(postern.key)
  return callsOf(twilio).map(({ promised, ...call }) => ({
    ...call,
    contentType: 'application/x-www-form-urlencoded',
    write: formOf,
    known: {
      ...{
        ServiceSid: [va],
        Sid: [sid, ...people],
        To: [...people, ...mails],
        Code: ['97531', '1'],
      },
      ...{ Channel: ['sms', 'email', 'call'], CustomCode: ['97531', 'aB12'], Locale: ['en', 'zh'] },
      ...{ VerificationSid: [sid], DeviceIp: ['203.0.113.7'], Status: ['canceled', 'converted'] },
      ...{ VerifyServiceSid: [va], PageSize: [1, 50], Page: [0], PageToken: [''] },
      ...{ DateCreatedAfter: [new Date(Date.now() - 3_600_000).toISOString()] },
      ...{ CustomMessage: [undefined], Amount: [undefined], Payee: [undefined] },
      ...{ SendDigits: [undefined], SnaClientToken: [undefined] },
    },
    proofs: [right, right, right, right, () => basic(page), () => basic('psk_wrong'), () => ({})],
    faultIn: (answer) => faultIn(promised(answer.status)?.schema, answer),
  }))
}

function formOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value)
  const form = new URLSearchParams()
  for (const [name, field] of Object.entries(value)) {
    if (field !== undefined)
      form.set(name, typeof field === 'string' ? field : JSON.stringify(field))
  }
  return String(form)
}

async function camaraCalls(postern: Postern, page: string): Promise<Call[]> {
  const { path, isMissing } = findForeign('camara/one-time-password-sms.yaml')
  if (isMissing) return []
  const camara = openForeignDocument(path)
  const bearerOf = (key: string) => ({ authorization: `Bearer ${key}` })
  const base = '/one-time-password-sms/v1'
  const sent = await fetch(`${postern.url}${base}/send-code`, {
    method: 'POST',
    headers: { ...bearerOf(postern.key), 'content-type': 'application/json' },
    body: JSON.stringify({ phoneNumber: people[0], message: '{{code}}' }),
  })
  const { authenticationId } = (await sent.json()) as { authenticationId: string }
  const right = () => bearerOf(postern.key)
  return callsOf(camara, base).map(({ promised, ...call }) => ({
    ...call,
    known: {
      phoneNumber: people,
      message: ['{{code}} is your code', '您的验证码：{{code}}'],
      authenticationId: [authenticationId],
      code: ['0000', '1234'],
    },
    proofs: [right, right, right, () => bearerOf(page), () => bearerOf('psk_wrong'), () => ({})],
    faultIn({ status, type, text }) {
      const answer = promised(status)
      if (!answer) return 'is not in the document'
      if (!answer.schema) return text ? 'has a body' : undefined
      if (type !== 'application/json') return `is ${type}`
      return camara.mistakesOf(answer.schema, JSON.parse(text))
    },
  }))
}

const text: JsonSchema = { type: 'string' }
const object = (properties: Record<string, JsonSchema>): JsonSchema => ({
  type: 'object',
  properties,
})

/** No document describes these calls. They are from the products, and the answers are from Postern's guides. */
function hookCalls(problemMistake: (text: string) => string | undefined): Call[] {
  const known = {
    ...{ phone: people, email: mails, otp: ['123456'], token: ['123456'], code: ['123456'] },
    ...{ to: [...people, ...mails], recipientPhoneNumber: people, recipientEmailAddress: mails },
    ...{ uuid: [randomUUID()], email_action_type: ['magiclink', 'email_change'], locale: ['en'] },
  }
  const call = (
    name: keyof typeof compat.hooks,
    body: JsonSchema,
    prove: Call['proofs'][number],
    faultIn: Call['faultIn'],
  ): Call => ({
    path: `/v1/hooks/${name}`,
    method: 'post',
    parameters: [],
    resolve: () => ({}),
    ...{ body, known, faultIn },
    proofs: [prove, prove, prove, (sent) => prove(`${sent} `), () => ({})],
  })
  const statuses = [400, 401, 403, 413, 422, 429, 503]
  const faultInProblem = ({ status, type, text }: Answer) => {
    if (status === 200) return text === '{}' ? undefined : 'is not {}'
    if (!statuses.includes(status)) return 'is not in the guide'
    return type === 'application/problem+json' ? problemMistake(text) : `is ${type}`
  }
  const faultInSupabase = (answer: Answer) => {
    if (answer.status !== 200) return faultInProblem(answer)
    const { error = { http_code: 400, message: 'none' }, ...more } = JSON.parse(answer.text)
    const { http_code: code, message } = error
    const isRight = Object.keys(more).length === 0 && statuses.includes(code) && message
    return isRight ? undefined : 'is neither {} nor an error'
  }
  const supabase = object({
    metadata: object({ uuid: text, ip_address: text }),
    user: object({ phone: text, email: text, new_email: text }),
    sms: object({ otp: text, phone: text }),
    email_data: object({ token: text, token_new: text, email_action_type: text }),
  })
  const zitadel = object({
    contextInfo: object({ recipientPhoneNumber: text, recipientEmailAddress: text }),
    args: object({ code: text, oTP: text }),
  })
  const logto = object({
    to: text,
    ip: text,
    type: text,
    payload: object({ code: text, locale: text }),
  })
  return [
    call(
      'supabase',
      supabase,
      (sent = '') => ({ ...signWebhook(webhookSecret, randomUUID(), Date.now(), sent) }),
      faultInSupabase,
    ),
    call('zitadel', zitadel, (sent = '') => zitadelHeaders(sent), faultInProblem),
    call('logto', logto, (sent = '') => logtoHeaders(sent), faultInProblem),
  ]
}

function zitadelHeaders(sent: string) {
  const at = Math.floor(Date.now() / 1_000)
  const signature = createHmac('sha256', zitadelKey).update(`${at}.${sent}`).digest('hex')
  return { 'zitadel-signature': `t=${at},v1=${signature}` }
}

/** Its calls are not signed. Another text at the end is another secret. */
const logtoHeaders = (sent: string) => ({
  authorization: `Bearer ${bearer}${/ $/.test(sent) ? 'x' : ''}`,
})
