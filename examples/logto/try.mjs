/**
 * Sends one code with Logto's own connectors, to try the hook before Logto does. See docs/guides/logto.md.
 *
 *   npm install
 *   LOGTO_HOOK_SECRET=… node try.mjs http://localhost:3000/v1/hooks/logto 8613800138000 123456
 */
import { readFileSync } from 'node:fs'
import mail from '@logto/connector-http-email'
import sms from '@logto/connector-http-sms'

const [endpoint, to, code] = process.argv.slice(2)
const connector = JSON.parse(readFileSync(new URL('connector.json', import.meta.url), 'utf8'))
const secret = process.env.LOGTO_HOOK_SECRET ?? ''
const authorization = connector.authorization.replace('<LOGTO_HOOK_SECRET>', secret)

const create = to.includes('@') ? mail : sms
const { sendMessage } = await create({ getConfig: async () => ({ endpoint, authorization }) })
try {
  await sendMessage({ to, type: 'SignIn', payload: { code, locale: 'en' } })
  console.log('sent')
} catch ({ data, message }) {
  console.log('refused', data ?? message)
}
