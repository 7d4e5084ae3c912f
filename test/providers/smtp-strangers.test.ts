import { describe, expect, it } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import {
  type Misbehaviour,
  smtp as protocol,
  startMisbehavingServer,
} from '../tools/misbehaving-server.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import smtp, * as given from './cases/smtp.ts'

describe('a mail server that misbehaves', () => {
  it.each<[Misbehaviour, string]>([
    ['endless', 'SMTP answer not understood'],
    ['half closes', 'SMTP connection lost'],
    ['never reads', 'SMTP no answer in time'],
    ['lies about the length', 'SMTP no answer in time'],
  ])('%s → unavailable: %s', async (misbehaviour, detail) => {
    const server = await startMisbehavingServer(protocol, misbehaviour)
    const settings = smtp.settings.parse({
      url: `smtp://127.0.0.1:${server.port}`,
      from: given.from,
    })
    const deps = { timeoutMs: 1_500, concurrency: 100, clock: Date.now }
    const provider = smtp.create('mail', settings, deps)
    releaseLater(() => provider.close())
    const message = { ...given.conformance.message, noticeId: newId() }
    const startMs = performance.now()
    expect(await provider.send(message, new AbortController().signal)).toMatchObject({
      kind: 'unavailable',
      detail,
    })
    if (detail.endsWith('understood')) expect(performance.now() - startMs).toBeLessThan(1_400)
    if (misbehaviour === 'never reads') return
    await eventually(() => server.connections.open === 0)
  })
})
