/**
 * Supabase Auth and Zitadel as callers of their hooks. Both are Go programs, and no package of npm makes their calls.
 * So this file follows their sources: requests, time limits, repeats, and the answers that count as a success.
 *
 *   Supabase: supabase/auth at bc32168, internal/hooks/hookshttp, hookserrors and v0hooks, internal/api/phone.go and mail.go
 *   Zitadel: zitadel/zitadel, internal/notification/channels/webhook, internal/notification/types, pkg/actions/signing.go
 *
 * Nothing here uses Postern's code for signatures.
 */
import { createHmac, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

/** Both stop waiting after 5 s, Supabase including its repeats. Ten times as much for a busy machine. */
const waitMs = 50_000
/** Supabase waits 2 s before it calls again. */
const pauseMs = 100
/** The default headers of Go's HTTP client. */
const ofGo = { 'user-agent': 'Go-http-client/1.1', 'content-type': 'application/json' }

/** The error that the product reports to its own caller. */
export class HookError extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

const supabaseUser = (more: object) => ({
  ...{ id: randomUUID(), aud: 'authenticated', role: 'authenticated', email: '', phone: '' },
  ...{ app_metadata: { provider: 'phone', providers: ['phone'] }, user_metadata: {} },
  ...{ identities: null, is_anonymous: false },
  ...{ created_at: new Date().toISOString(), updated_at: new Date().toISOString() },
  ...more,
})

const supabaseMetadata = (name: string) => ({
  ...{ uuid: randomUUID(), time: new Date().toISOString(), name, ip_address: '192.0.2.44' },
})

/** A person signs up, or signs in, by phone. */
export const supabaseSms = (phone: string, otp: string) => ({
  metadata: supabaseMetadata('send-sms'),
  user: supabaseUser({ phone }),
  sms: { otp, phone },
})

/** `change`: the new address, and the code for it if both addresses get one. */
export const supabaseMail = (
  email: string,
  token: string,
  change?: { newEmail: string; tokenNew: string },
) => ({
  metadata: supabaseMetadata('send-email'),
  user: supabaseUser({ email, ...(change ? { new_email: change.newEmail } : {}) }),
  email_data: {
    token,
    token_hash: 'a'.repeat(56),
    redirect_to: 'https://shop.example/',
    email_action_type: change ? 'email_change' : 'signup',
    site_url: 'https://shop.example',
    token_new: change?.tokenNew ?? '',
    token_hash_new: '',
    ...{ old_email: '', old_phone: '', provider: '', factor_type: '' },
  },
})

/** `secrets` as in Supabase's settings. Throws HookError. */
export async function callAsSupabase(url: string, secrets: string, input: object): Promise<void> {
  const body = JSON.stringify(input)
  const signal = AbortSignal.timeout(waitMs)
  for (let attempt = 0; attempt < 3; attempt++) {
    const [id, at] = [randomUUID(), Math.floor(Date.now() / 1_000)]
    const signatures = secrets.split('|').map((secret) => {
      const key = Buffer.from(secret.replace('v1,whsec_', ''), 'base64')
      return `v1,${createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64')}`
    })
    const headers = {
      ...{ ...ofGo, 'accept-encoding': 'identity', 'webhook-id': id },
      ...{ 'webhook-timestamp': String(at), 'webhook-signature': signatures.join(', ') },
    }
    let answer: Response
    try {
      answer = await fetch(url, { method: 'POST', headers, body, signal })
    } catch {
      if (signal.aborted || attempt === 2) throw new HookError(422, 'the hook was not reached')
      await sleep(pauseMs)
      continue
    }
    const { status } = answer
    if (status === 204) return
    if (status === 200 || status === 202) return readSupabaseAnswer(answer)
    const mayRepeat = (status === 429 || status === 503) && answer.headers.get('retry-after')
    if (!mayRepeat) throw new HookError(500, `the hook answered ${status}`)
  }
  throw new HookError(500, 'the hook is unavailable')
}

async function readSupabaseAnswer(answer: Response): Promise<void> {
  const [mediaType] = (answer.headers.get('content-type') ?? '').split(';')
  if (mediaType !== 'application/json') throw new HookError(400, 'not JSON')
  const { error } = JSON.parse(await answer.text())
  // An error without a message counts as no error.
  if (error?.message) throw new HookError(error.http_code || 500, error.message)
}

/** `contextInfo` has the recipient. `args` has `code`, and for a second factor `oTP` too. */
export function zitadelMessage(recipient: string, code: string, isOtp = false) {
  const isPhone = recipient.startsWith('+')
  return {
    contextInfo: {
      eventType: isOtp ? 'user.human.otp.sms.code.added' : 'user.human.phone.code.added',
      provider: { id: '285181292935381355', description: 'Postern' },
      [isPhone ? 'recipientPhoneNumber' : 'recipientEmailAddress']: recipient,
    },
    templateData: {
      ...{ title: 'Verify phone', preHeader: 'Verify phone', subject: 'Verify phone' },
      ...{ greeting: 'Hello Ada,', text: `Your code is ${code}.`, url: '', buttonText: 'Verify' },
      ...{ primaryColor: '#5469d4', backgroundColor: '#fafafa', fontColor: '#000000' },
    },
    args: {
      ...{ code, ...(isOtp ? { oTP: code } : {}), domain: 'auth.example', expiry: 3e11 },
      ...{ lastPhone: isPhone ? recipient : '', userName: 'ada', displayName: 'Ada' },
    },
  }
}

/** One attempt. After an error, Zitadel's queue makes the next one and signs it again. Throws HookError. */
export async function callAsZitadel(
  url: string,
  keys: readonly string[],
  input: object,
  signedAtMs = Date.now(),
): Promise<void> {
  const [body, at] = [JSON.stringify(input), Math.floor(signedAtMs / 1_000)]
  const signatures = keys.map(
    (key) => `v1=${createHmac('sha256', key).update(`${at}.${body}`).digest('hex')}`,
  )
  const headers = { ...ofGo, 'Zitadel-Signature': [`t=${at}`, ...signatures].join(',') }
  const signal = AbortSignal.timeout(waitMs)
  const answer = await fetch(url, { method: 'POST', headers, body, signal })
  await answer.body?.cancel()
  if (!answer.ok) throw new HookError(answer.status, 'no success status')
}
