import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { parse } from 'yaml'
import { newId } from '../../src/base/ids.ts'
import { startPrivateRedis } from '../../src/dev/private-redis.ts'
import { findProviderKind } from '../../src/providers/index.ts'
import { createSandboxOutbox } from '../../src/providers/sandbox/outbox.ts'
import type { FarEnd } from './conformance.ts'
import { startAliyunFarEnd } from './far-ends/aliyun.ts'
import { startSmppFarEnd } from './far-ends/smpp.ts'
import { startSmtpFarEnd } from './far-ends/smtp.ts'
import { startTencentFarEnd } from './far-ends/tencent.ts'
import { startTwilioFarEnd } from './far-ends/twilio.ts'
import { startWebhookFarEnd } from './far-ends/webhook.ts'

/**
 * Tries a kind of provider as its page says: takes the policy-file entry out of
 * `docs/providers/<kind>.md`, starts the simulated far end, sends one message and shows what came of it.
 * `npx node test/providers/try.ts <kind>`
 */
const secret = 'whsec_dGhpcyBpcyBub3QgYSBzZWNyZXQgYXQgYWxs'
const accountSid = `AC${'0'.repeat(32)}`

/** The far end of each kind, and what the environment of the page's entry must then say. */
const farEnds: Readonly<
  Record<string, () => Promise<{ farEnd: FarEnd & { port: number }; env: Record<string, string> }>>
> = {
  async smtp() {
    const farEnd = await startSmtpFarEnd()
    return { farEnd, env: { SMTP_URL: `smtp://127.0.0.1:${farEnd.port}` } }
  },
  async aliyun() {
    const farEnd = await startAliyunFarEnd({ id: 'try-id', secret: 'try-secret' })
    const env = { ALIYUN_ACCESS_KEY_ID: 'try-id', ALIYUN_ACCESS_KEY_SECRET: 'try-secret' }
    return { farEnd, env: { ...env, ALIYUN_RECEIPT_TOKEN: 'a-token-for-trying' } }
  },
  async tencent() {
    const farEnd = await startTencentFarEnd({ id: 'try-id', secret: 'try-key' })
    const env = { TENCENT_SECRET_ID: 'try-id', TENCENT_SECRET_KEY: 'try-key' }
    return { farEnd, env: { ...env, TENCENT_RECEIPT_TOKEN: 'a-token-for-trying' } }
  },
  async twilio() {
    const farEnd = await startTwilioFarEnd(accountSid, 'try-token')
    return { farEnd, env: { TWILIO_ACCOUNT_SID: accountSid, TWILIO_AUTH_TOKEN: 'try-token' } }
  },
  async smpp() {
    const farEnd = await startSmppFarEnd()
    return { farEnd, env: { SMPP_URL: `smpp://postern:pass@127.0.0.1:${farEnd.port}` } }
  },
  async webhook() {
    const farEnd = await startWebhookFarEnd(secret)
    return { farEnd, env: { CARRIER_SECRET: secret } }
  },
}

/** Where an entry has no far end in its environment, this setting leads to ours. */
const addressSetting: Readonly<Record<string, string>> = {
  aliyun: 'endpoint',
  tencent: 'endpoint',
  twilio: 'endpoint',
  webhook: 'url',
}

/** The first policy-file entry of the page, `${NAME}` filled in. */
export function readPage(kind: string, env: Readonly<Record<string, string>>) {
  const page = readFileSync(new URL(`../../docs/providers/${kind}.md`, import.meta.url), 'utf8')
  const block = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  const filled = block.replace(/\$\{(\w+)\}/g, (_, name: string) => env[name] ?? `no ${name}`)
  const [first] = Object.entries(parse(filled).providers as Record<string, object>)
  if (!first) throw new Error(`docs/providers/${kind}.md has no policy-file entry`)
  const [name, { kind: named, ...settings }] = first as [string, Record<string, unknown>]
  return { name, kind: named, settings }
}

export async function tryProvider(kindName: string) {
  const kind = findProviderKind(kindName)
  const start = farEnds[kindName]
  if (!kind || (!start && kindName !== 'sandbox')) throw new Error(`no kind ${kindName}`)
  const { farEnd, env } = start ? await start() : { farEnd: undefined, env: {} }
  const page = readPage(kindName, env)
  const address = addressSetting[kindName]
  const settings = kind.settings.parse({
    ...page.settings,
    ...(address && farEnd ? { [address]: `http://127.0.0.1:${farEnd.port}` } : {}),
  })
  const redis = kindName === 'sandbox' ? await startTryRedis() : undefined
  const provider = kind.create(page.name, settings, {
    timeoutMs: 5_000,
    concurrency: 100,
    clock: Date.now,
    ...(redis ? { outbox: redis.outbox } : {}),
  })
  const channel = kind.channels[0] ?? 'sms'
  const noticeId = newId()
  const message = {
    noticeId,
    channel,
    to: channel === 'email' ? 'ada@example.test' : '+8613800138000',
    template: 'captcha',
    locale: 'en',
    variables: { code: '1234', minutes: '5' },
    subject: 'Your code',
    text: 'Your code is 1234.',
  }
  try {
    const result = await provider.send(message, AbortSignal.timeout(5_000))
    const seen = redis ? await redis.outbox.list() : (farEnd?.taken ?? [])
    return { noticeId, result, seen, complaints: farEnd?.complaints ?? [] }
  } finally {
    await provider.close()
    await farEnd?.close()
    await redis?.stop()
  }
}

async function startTryRedis() {
  const dataDir = mkdtempSync(join(tmpdir(), 'postern-try-'))
  const server = await startPrivateRedis({ dataDir })
  const client = new Redis(server.url)
  return {
    outbox: createSandboxOutbox(client, 'try:'),
    async stop() {
      client.disconnect()
      await server.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

if (process.argv[1] === import.meta.filename) {
  console.dir(await tryProvider(process.argv[2] ?? ''), { depth: 5 })
}
