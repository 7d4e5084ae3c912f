/** Floods of requests without a valid key, against a separate API process whose processor time is measured. */
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import {
  flood,
  floodedFacades,
  keylessKinds,
  receiptProviders,
  validSend,
} from '../../bench/flood.ts'
import { testDatabase } from '../tools/database.ts'
import { noLimits, processEnv } from '../tools/postern.ts'
import { startProcess } from '../tools/processes.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const policyFile = {
  policies: noLimits,
  providers: { sandbox: { kind: 'sandbox' }, ...receiptProviders },
  compat: floodedFacades,
}

test('I21: no kind costs more than 2 ms of processor time per kB it sent, and every valid send beside them is accepted', async () => {
  const { api, key } = await startApi()
  const ask = (kind: string, seconds: number, perSecond: number) =>
    flood(api.url, { perSecond, seconds, connections: 8, next: keylessKinds[kind] as () => string })
  // Code that runs for the first time costs more than the measured work.
  for (const kind of Object.keys(keylessKinds)) await ask(kind, 0.05, 400)

  const dear: string[] = []
  let accepted = 0
  for (const kind of Object.keys(keylessKinds)) {
    const before = await cpuMsOf(api.adminUrl)
    const { sent, sentBytes, failed, statuses } = await ask(kind, 0.3, 500)
    const costMs = (await cpuMsOf(api.adminUrl)) - before
    // A request of less than a kB counts as one kB.
    const sentKb = Math.max(sent, sentBytes / 1_024)
    if (costMs > 2 * sentKb) dear.push(`${kind}: ${(costMs / sentKb).toFixed(2)} ms per kB`)
    expect({ kind, failed, ok: [...statuses.keys()].filter((status) => status >= 500) }).toEqual({
      kind,
      failed: expect.any(Number),
      ok: [],
    })

    // Once more if the machine was too busy: a kind that starves others does so every time.
    await eventually(async () => {
      const [, beside] = await Promise.all([
        ask(kind, 0.3, 500),
        flood(api.url, { perSecond: 10, seconds: 0.3, connections: 3, next: () => validSend(key) }),
      ])
      expect({ kind, statuses: [...beside.statuses] }).toEqual({ kind, statuses: [[202, 3]] })
    })
    accepted += 3
  }
  expect(dear).toEqual([])
  expect(accepted).toBeGreaterThanOrEqual(27)
}, 300_000)

test('1,000 different wrong keys a second, each with its checksum: 27 of 27 sends are accepted', async () => {
  const { api, key } = await startApi({ LOG_LEVEL: 'info' })
  const next = keylessKinds['a wrong key with its checksum'] as () => string
  let sent = 0
  await eventually(
    async () => {
      const [wrong, valid] = await Promise.all([
        flood(api.url, { perSecond: 1_000, seconds: 3, connections: 64, next }),
        flood(api.url, { perSecond: 9, seconds: 3, connections: 9, next: () => validSend(key) }),
      ])
      sent += wrong.sent
      expect([...valid.statuses]).toEqual([[202, 27]])
      expect([...wrong.statuses]).toEqual([[401, 3_000]])
    },
    { withinMs: 120_000 },
  )
  // The log shows a sample of ten a second.
  await eventually(() => expect(api.output()).toContain('"status":401'))
  expect(api.output().split('"status":401').length).toBeLessThan(sent / 5)
})

async function startApi(more: Readonly<Record<string, string>> = {}) {
  const [redis, database] = [await testRedis(), await testDatabase()]
  // Its ports are its own.
  const env = processEnv({ policyFile, redis, database })
  return {
    api: await startProcess('api', { env: { ...env, ...more } }),
    key: env.BOOTSTRAP_SECRET_KEY as string,
  }
}

test('I21: unread answers are not held: 300 connections that ask for much and read nothing', async () => {
  // With so little memory, leaked bytes would end a process. Garbage is collected in time.
  const { api, key } = await startApi({ NODE_OPTIONS: '--max-old-space-size=128' })
  const before = await bytesBesideHeap(api.adminUrl)
  const asked = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100)
  const deaf = Array.from({ length: 300 }, () =>
    connect(Number(new URL(api.url).port), '127.0.0.1'),
  )
  for (const socket of deaf) {
    releaseLater(() => socket.destroy())
    socket.on('error', () => {})
    socket.pause().write(asked)
  }
  // Sent after their requests: when it is answered, all of theirs have been processed.
  await eventually(
    async () => {
      const next = () => validSend(key)
      const valid = await flood(api.url, { perSecond: 5, seconds: 1, connections: 1, next })
      expect([...valid.statuses]).toEqual([[202, 5]])
      expect((await bytesBesideHeap(api.adminUrl)) - before).toBeLessThan(300 * 65_536)
    },
    { withinMs: 90_000 },
  )
})

/** The bytes of buffers in the process. */
async function bytesBesideHeap(adminUrl: string): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  return Number(/^postern_nodejs_external_memory_bytes\{[^}]*\} (\S+)/m.exec(text)?.[1])
}

/** Processor time of the process. */
async function cpuMsOf(adminUrl: string): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  return Number(/^postern_process_cpu_seconds_total\{[^}]*\} (\S+)/m.exec(text)?.[1]) * 1_000
}
