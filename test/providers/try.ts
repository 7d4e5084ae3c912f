import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { parse } from 'yaml'
import { newId } from '../../src/base/ids.ts'
import { startPrivateRedis } from '../../src/dev/private-redis.ts'
import { ownKinds } from '../../src/providers/kinds.ts'
import type { SandboxDeps } from '../../src/providers/sandbox/index.ts'
import { createSandboxOutbox } from '../../src/providers/sandbox/outbox.ts'
import type { ConformanceCase } from './conformance.ts'
import { farEndTools } from './far-ends/http.ts'

/**
 * Tries a provider kind with the settings of its page. It takes the policy-file entry out of
 * `docs/providers/<kind>.md`, starts the far end of its conformance case, sends one message, and shows the result.
 *
 *   npx node test/providers/try.ts KIND
 *
 * Some far ends are packages that only `npm ci` with the development packages installs.
 */

/** The first policy-file entry of the page. */
export function readPage(kind: string) {
  const page = readFileSync(new URL(`../../docs/providers/${kind}.md`, import.meta.url), 'utf8')
  const block = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  const [first] = Object.entries(parse(block).providers as Record<string, object>)
  if (!first) throw new Error(`docs/providers/${kind}.md has no policy-file entry`)
  const [name, { kind: named, ...settings }] = first as [string, Record<string, unknown>]
  return { name, kind: named, settings }
}

/**
 * The page's settings with the addresses and secrets of a far end, in place of addresses and values from the
 * environment.
 */
function settingsOf(page: Record<string, unknown>, farEnd: Record<string, unknown>) {
  const isGiven = (value: unknown, name: string) =>
    JSON.stringify(page[name] ?? '').includes('${') || String(value).includes('127.0.0.1:')
  const given = Object.entries(farEnd).filter(([name, value]) => isGiven(value, name))
  return { ...page, ...Object.fromEntries(given) }
}

export async function tryProvider(kindName: string) {
  const kind = ownKinds.find((each) => each.kind === kindName)
  if (!kind) throw new Error(`no kind ${kindName}`)
  const isSandbox = kindName === 'sandbox'
  const { conformance } = isSandbox ? { conformance: undefined } : await loadCase(kindName)
  const farEnd = await conformance?.startFarEnd(farEndTools)
  const page = readPage(kindName)
  const settings = kind.settings.parse(
    farEnd ? settingsOf(page.settings, conformance?.settings(farEnd.port) ?? {}) : page.settings,
  )
  const redis = isSandbox ? await startTryRedis() : undefined
  const deps: SandboxDeps = {
    timeoutMs: 5_000,
    concurrency: 100,
    clock: Date.now,
    ...(redis ? { outbox: redis.outbox } : {}),
  }
  const provider = kind.create(page.name, settings, deps)
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

async function loadCase(kindName: string): Promise<ConformanceCase> {
  try {
    return await import(`./cases/${kindName}.ts`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new Error('The simulated far end needs the development packages. Run `npm ci` first.', {
      cause: error,
    })
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
  const [kind = '', ...more] = process.argv.slice(2)
  const kinds = ownKinds.map((each) => each.kind)
  if (more.length > 0 || !kinds.includes(kind)) {
    console.error(`Usage: npx node test/providers/try.ts KIND\nKinds: ${kinds.join(', ')}`)
    process.exit(1)
  }
  try {
    console.dir(await tryProvider(kind), { depth: 5 })
  } catch (error) {
    console.error((error as Error).message)
    process.exitCode = 1
  }
}
