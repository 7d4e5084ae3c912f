import { describe, expect, it } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import type { ProviderDeps } from '../../src/providers/provider-kind.ts'
import {
  type Misbehaviour,
  type Protocol,
  smppFloods,
  smpp as smppWords,
  startMisbehavingServer,
} from '../tools/misbehaving-server.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import smpp, * as given from './cases/smpp.ts'

const never = new AbortController().signal

async function start(
  protocol: Protocol,
  misbehaviour: Misbehaviour,
  deps: Partial<ProviderDeps> = {},
  entry: object = {},
) {
  const server = await startMisbehavingServer(protocol, misbehaviour)
  const url = `smpp://postern:pass@127.0.0.1:${server.port}`
  const settings = smpp.settings.parse({ url, from: 'Acme', ...entry })
  const provider = smpp.create('smsc', settings, {
    timeoutMs: 1_000,
    concurrency: 100,
    clock: Date.now,
    ...deps,
  })
  releaseLater(() => provider.close())
  return { server, provider }
}

describe('an SMSC that misbehaves', () => {
  it('floods with receipts → at most 200 are under way, and it waits until they are stored', async () => {
    const held: (() => void)[] = []
    let most = 0
    let taken = 0
    const onReceipt = () =>
      new Promise<void>((resolve) => {
        taken += 1
        held.push(resolve)
        most = Math.max(most, held.length)
      })
    const { server } = await start(smppWords(), 'floods', { onReceipt })
    await eventually(() => held.length === 200)
    const sent = await eventually(async () => {
      const before = server.bytesSent()
      await new Promise((resolve) => setTimeout(resolve, 100))
      return server.bytesSent() === before && before
    })
    expect(taken).toBe(200)
    for (const release of held.splice(0)) release()
    await eventually(() => taken >= 400)
    expect(most).toBe(200)
    // The rest waits in the sockets of this machine.
    expect(sent).toBeLessThan(16_000_000)
    const releasing = setInterval(() => held.splice(0).map((release) => release()), 10)
    releaseLater(() => clearInterval(releasing))
  })

  it.each(['enquire_link', 'unknown commands', 'answers without a request'] as const)(
    'floods with %s → the session ends',
    async (what) => {
      const { server, provider } = await start(smppWords([smppFloods[what]]), 'floods')
      const message = { ...given.conformance.message, noticeId: newId() }
      const result = await provider.send(message, never)
      expect(result).toMatchObject({ detail: 'SMPP too many requests' })
      expect(server.connections.total).toBe(1)
    },
  )

  it.each<[Misbehaviour, string]>([
    ['endless', 'SMPP answer not understood'],
    ['crumbs', 'SMPP too many requests'],
    ['half closes', 'SMPP connection lost'],
    ['lies about the length', 'SMPP answer not understood'],
    ['sends more than it announces', 'SMPP answer not understood'],
    ['never reads', 'SMPP no answer in time'],
  ])('%s → unknown: %s', async (misbehaviour, detail) => {
    const { provider } = await start(smppWords(), misbehaviour)
    const message = { ...given.conformance.message, noticeId: newId() }
    expect(await provider.send(message, never)).toEqual({ kind: 'unknown', detail })
  })
})
