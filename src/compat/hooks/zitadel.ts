/** The HTTP provider of Zitadel, for SMS and mail. `ZITADEL-Signature: t=<seconds>,v1=<hex>`, with a `v1` for each key. */
import { createHash, createHmac } from 'node:crypto'
import { z } from 'zod'
import { isSameSecret } from '../../crypto/same-secret.ts'
import { findShortness, type HookHead, type HookKind } from './hook-kind.ts'

/** The tolerance of Standard Webhooks, and of Zitadel's own library. */
const toleranceMs = 300_000
const maxSignatures = 10

const text = z.string().nullish()

const body = z.object({
  contextInfo: z.object({ recipientPhoneNumber: text, recipientEmailAddress: text }),
  /** Zitadel spells it `oTP`. */
  args: z.object({ code: text, oTP: text }).nullish(),
})

export const zitadel: HookKind = {
  findMistake: findShortness,
  create: (secret) => ({
    mayBeGenuine: (head) => signedHead(head) !== undefined,
    isGenuine({ rawBody, ...head }) {
      const signed = signedHead(head)
      if (!signed) return false
      const hmac = createHmac('sha256', secret).update(`${signed.seconds}.`).update(rawBody)
      const expected = hmac.digest('hex')
      return signed.signatures.some((one) => isSameSecret(one, expected))
    },
    read(given, { rawBody }) {
      const parsed = body.safeParse(given)
      if (!parsed.success) return undefined
      const { contextInfo, args } = parsed.data
      const { recipientPhoneNumber: phone, recipientEmailAddress: email } = contextInfo
      const code = args?.code || args?.oTP
      const to = phone || email
      if (!to) return undefined
      const channel = phone ? 'sms' : 'email'
      // A call has no id, and Zitadel signs each repeat anew. So the body is the id: a new code makes another body.
      const id = createHash('sha256').update(rawBody).digest('hex')
      return { id, codes: code ? [{ channel, to, code }] : [] }
    },
  }),
}

/** Undefined for a header of another form, or a time too far from now. */
function signedHead({ headers, receivedAt }: HookHead) {
  const parts = String(headers['zitadel-signature'] ?? '').split(',', maxSignatures + 1)
  const valuesOf = (name: string) =>
    parts.flatMap((part) => (part.startsWith(`${name}=`) ? [part.slice(name.length + 1)] : []))
  const [seconds = '', ...others] = valuesOf('t')
  const signatures = valuesOf('v1')
  if (!/^\d{1,12}$/.test(seconds) || others.length > 0 || signatures.length === 0) return undefined
  const isTimely = Math.abs(receivedAt - Number(seconds) * 1_000) <= toleranceMs
  return isTimely ? { seconds, signatures } : undefined
}
