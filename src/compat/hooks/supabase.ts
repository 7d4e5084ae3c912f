/**
 * The hooks "send SMS" and "send email" of Supabase Auth, signed by Standard Webhooks. Both can call one address.
 *
 * Supabase repeats a call up to three times, each time with a new `webhook-id`, but with the same `metadata.uuid`.
 *
 * A code for a new number or address never goes to the old one: its owner would confirm what is not theirs. `sms.phone`
 * came in September 2025 (https://github.com/supabase/auth/pull/2160). Older versions do not name the number.
 */

import { z } from 'zod'
import type { FieldWord } from '../../base/words.ts'
import {
  isSignedWebhook,
  isUsableSecret,
  mayBeSignedWebhook,
} from '../../crypto/standard-webhooks.ts'
import type { CodeToSend, HookKind } from './hook-kind.ts'

/** Supabase writes absent texts as empty ones. */
const text = z.string().nullish()

const body = z.object({
  metadata: z.object({ uuid: text, ip_address: text }).nullish(),
  user: z.object({ phone: text, new_phone: text, email: text, new_email: text }).nullish(),
  sms: z.object({ otp: z.string(), phone: text }).nullish(),
  email_data: z.object({ token: text, token_new: text, email_action_type: text }).nullish(),
})

type Body = z.infer<typeof body>

export const supabase: HookKind = {
  findMistake: (secret) =>
    secretsIn(secret).every(isUsableSecret)
      ? undefined
      : 'must be v1,whsec_ and base64 of 16 bytes or more; several are joined by |',
  secretsIn,
  create(secret) {
    const secrets = secretsIn(secret)
    return {
      refusesIn200: true,
      mayBeGenuine: ({ headers, receivedAt }) => mayBeSignedWebhook(headers, receivedAt),
      isGenuine: ({ headers, rawBody, receivedAt }) =>
        secrets.some((one) => isSignedWebhook(one, headers, rawBody, receivedAt)),
      read(given, { headers }) {
        const parsed = body.safeParse(given)
        if (!parsed.success || !(parsed.data.sms || parsed.data.email_data)) return undefined
        const { metadata } = parsed.data
        const ip = metadata?.ip_address ?? undefined
        return {
          id: metadata?.uuid || String(headers['webhook-id']),
          codes: codesIn(parsed.data).map((code) => ({ ...code, ip })),
          refusal: unnamedIn(parsed.data),
        }
      },
    }
  },
}

/** The secrets in a text of Supabase's settings: `v1,whsec_…|v1,whsec_…`. */
function secretsIn(secret: string): string[] {
  return secret.split(/\||, /).map((one) => one.trim().replace(/^v1,/, ''))
}

function unnamedIn({ user, sms, email_data: mail }: Body): FieldWord | undefined {
  const isOtherPhone = user?.new_phone && user.new_phone !== user.phone
  if (sms && !sms.phone && isOtherPhone) {
    return 'numberUnnamed'
  }
  const isChange = mail?.email_action_type === 'email_change'
  const hasCode = mail?.token || mail?.token_new
  return !sms && isChange && hasCode && !user?.new_email ? 'addressUnnamed' : undefined
}

function codesIn({ user, sms, email_data: mail }: Body): CodeToSend[] {
  if (sms) return [{ channel: 'sms', to: sms.phone || user?.phone || '', code: sms.otp }]
  const [email, newEmail] = [user?.email ?? '', user?.new_email ?? '']
  const isChange = mail?.email_action_type === 'email_change'
  // A change of the address can need a code for each address, or only one for the new address.
  const both = [
    { to: isChange && !mail?.token_new && newEmail ? newEmail : email, code: mail?.token },
    { to: newEmail, code: isChange ? mail?.token_new : undefined },
  ]
  return both.flatMap(({ to, code }) => (code ? [{ channel: 'email', to, code }] : []))
}
