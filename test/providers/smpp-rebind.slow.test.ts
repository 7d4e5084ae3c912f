import { expect, test } from 'vitest'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import smpp from './cases/smpp.ts'
import { startSmppFarEnd } from './far-ends/smpp.ts'

test('an SMSC refuses the receiver several times → it is bound by itself as soon as the SMSC accepts it', async () => {
  const farEnd = await startSmppFarEnd({ knows: 'separate', refusedReceivers: 3 })
  const url = `smpp://postern:pass@127.0.0.1:${farEnd.port}`
  const provider = smpp.create(
    'smsc',
    smpp.settings.parse({ url, from: 'Acme', bind: 'separate' }),
    { timeoutMs: 20_000, concurrency: 100, clock: Date.now, onReceipt: async () => {} },
  )
  releaseLater(farEnd.close)
  releaseLater(provider.close)
  await eventually(() => farEnd.sessions.length === 1, { withinMs: 30_000 })
  expect(farEnd.binds).toHaveLength(4)
}, 60_000)
