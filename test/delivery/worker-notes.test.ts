import { expect, test } from 'vitest'
import type { ProviderState } from '../../src/delivery/circuit.ts'
import { readWorkerNotes, startWorkerNotes } from '../../src/delivery/worker-notes.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const { client: redis, prefix: keyPrefix } = await testRedis()
const read = () => readWorkerNotes(redis, keyPrefix)

function startOne(look: () => Record<string, ProviderState>) {
  const notes = closeLater(startWorkerNotes({ redis, keyPrefix, look, spacingMs: 50 }), 'stop')
  return notes
}

test('every worker reports what it has learnt, again when that changes, and nothing once it has stopped', async () => {
  let state: ProviderState = 'ready'
  const one = startOne(() => ({ mail: state }))
  const two = startOne(() => ({ mail: 'paused' }))
  await eventually(async () => (await read()).length === 2)
  expect((await read()).map(({ providers }) => providers.mail).sort()).toEqual(['paused', 'ready'])
  state = 'circuit'
  await eventually(async () => {
    const said = (await read()).map(({ providers }) => providers.mail)
    return said.includes('circuit')
  })
  // Each note has the time for which the circuit stays open. Closed circuits are left out.
  await eventually(async () => {
    const notes = await read()
    const open = notes.find(({ providers }) => providers.mail === 'circuit')
    return (open?.openForMs?.mail ?? 0) > 50
  })
  state = 'ready'
  await eventually(async () => (await read()).every(({ openForMs }) => !openForMs?.mail))
  await one.stop()
  expect(await read()).toEqual([{ providers: { mail: 'paused' }, openForMs: {} }])
  await two.stop()
  expect(await read()).toEqual([])
})

test('a worker that died without a word is forgotten by Redis’ time, and its note leaves Redis', async () => {
  const longAgo = Date.now() - 60_000
  const key = `${keyPrefix}workers`
  await redis.hset(key, 'dead', `${longAgo} {"providers":{"mail":"ready"}}`)
  expect(await read()).toEqual([])
  expect(await redis.exists(key)).toBe(0)
})

test('the last note of all goes by itself', async () => {
  const one = startOne(() => ({ mail: 'ready' }))
  await eventually(async () => (await read()).length === 1)
  expect(await redis.pttl(`${keyPrefix}workers`)).toBeGreaterThan(0)
  await one.stop()
})
