/**
 * Calls the hook as Supabase Auth does, to try it before Supabase does. See docs/guides/supabase.md.
 *
 *   npm install
 *   SUPABASE_HOOK_SECRET=v1,whsec_… node call-hook.mjs http://localhost:3000/v1/hooks/supabase 8613800138000 123456
 */
import { randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'

const [url, to, code] = process.argv.slice(2)
const [secret] = (process.env.SUPABASE_HOOK_SECRET ?? '').split('|')

const message = to.includes('@')
  ? { user: { email: to }, email_data: { token: code, email_action_type: 'magiclink' } }
  : { user: { phone: to }, sms: { otp: code, phone: to } }
const body = JSON.stringify({ metadata: { uuid: randomUUID() }, ...message })

const [id, now] = [randomUUID(), new Date()]
const headers = {
  'content-type': 'application/json',
  'webhook-id': id,
  'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
  'webhook-signature': new Webhook(secret.replace(/^v1,/, '')).sign(id, now, body),
}
const answer = await fetch(url, { method: 'POST', headers, body })
console.log(answer.status, await answer.text())
