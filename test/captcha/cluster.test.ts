import { setTimeout as sleep } from 'node:timers/promises'
import { type Cluster, Redis } from 'ioredis'
import { beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createOnce } from '../../src/base/redis-once.ts'
import { type CodeOwner, createCodeStore } from '../../src/captcha/code-store.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createLimiter } from '../../src/limiter/index.ts'
import { type ConnectionRole, connectRedis } from '../../src/storage/redis.ts'
import type { OwnServer } from '../tools/own-servers.ts'
import { ownCluster } from '../tools/redis-topologies.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const people = Array.from({ length: 12 }, (_, nth) => `+86138001380${String(nth).padStart(2, '0')}`)
const rounds = [1, 2, 3]

describe('a node of a cluster closes its connections after the command and before its answer', () => {
  let url = ''
  let nodes: OwnServer[] = []
  let killers: Redis[] = []
  let wakers: Redis[] = []

  beforeAll(async () => {
    const cluster = await ownCluster()
    url = cluster.url
    nodes = cluster.nodes
    const { password } = new URL(url.replace(/,.*/, ''))
    const open = ({ port }: OwnServer) => {
      const client = new Redis({ port, password, maxRetriesPerRequest: 0 })
      client.on('error', () => {})
      releaseLater(() => client.disconnect())
      return client
    }
    killers = nodes.map(open)
    wakers = nodes.map(open)
  })

  async function connect(role: ConnectionRole) {
    const redis = closeLater(
      connectRedis(url, role, () => {}),
      'disconnect',
    )
    await eventually(() => redis.get('x').then(() => true))
    await Promise.all((redis as Cluster).nodes().map((node) => node.ping()))
    return redis
  }

  /**
   * Closes all connections to the round's node. The node then has the commands of `work` in one turn with the command
   * that closes their connections. It writes answers at the end of a turn.
   */
  async function killDuring<T>(round: number, work: () => Promise<T>): Promise<T> {
    const [node, killer, waker] = [nodes[round - 1], killers[round - 1], wakers[round - 1]]
    if (!node || !killer || !waker) throw new Error('there are three nodes')
    node.freeze()
    try {
      // The first turn of the node that wakes may have only this.
      const woken = waker.eval('for _ = 1, 2e6 do end', 0).catch(() => {})
      await sleep(20)
      const done = work()
      await sleep(20)
      const killed = killer.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      await sleep(20)
      node.thaw()
      await Promise.all([killed, woken])
      return await done
    } finally {
      node.thaw()
    }
  }

  const codesOf = async () => {
    const options = { keyPrefix: 'test:', ttlMs: 300_000, triesPerCode: 3 }
    const store = createCodeStore(await connect('code'), createSecrets('s'.repeat(32)), options)
    releaseLater(() => store.close())
    return store
  }

  const newOwners = (): CodeOwner[] => {
    const app = newId()
    return people.map((to) => ({ app, scene: 'login', channel: 'sms', to }))
  }

  /** On a busy machine, all commands may come after the kill. Then they are answered, and nothing is proved yet. */
  async function untilCut(work: () => Promise<PromiseSettledResult<unknown>[]>): Promise<void> {
    for (let turn = 0; turn < 20; turn++) {
      const settled = await work()
      if (settled.some(({ status }) => status === 'rejected')) return
    }
    throw new Error('no command was cut off')
  }

  /** Each owner has the code 0042 and guesses once. */
  async function guessDuringKill(round: number, guess: string) {
    const codes = await codesOf()
    const owners = newOwners()
    await Promise.all(owners.map((each) => codes.remember(each, newId(), '0042')))
    const guessed = await killDuring(round, () =>
      Promise.allSettled(owners.map((each) => codes.guess(each, guess))),
    )
    return { codes, owners, guessed }
  }

  test.each(rounds)(
    'I4, I23, round %i: a right code whose check ended in an error passes, once',
    (round) =>
      untilCut(async () => {
        const { codes, owners, guessed } = await guessDuringKill(round, '0042')
        for (const [nth, { status }] of guessed.entries()) {
          const each = owners[nth] as CodeOwner
          if (status === 'fulfilled') {
            expect(guessed[nth]).toMatchObject({ value: { result: 'passed' } })
          } else {
            await eventually(async () =>
              expect(await codes.guess(each, '0042')).toMatchObject({ result: 'passed' }),
            )
          }
          expect(await eventually(() => codes.guess(each, '0042'))).toMatchObject({
            result: 'gone',
          })
        }
        return guessed
      }),
  )

  test.each(rounds)(
    'I5, round %i: a wrong code costs one try, and none if its check ended in an error',
    (round) =>
      untilCut(async () => {
        const { codes, owners, guessed } = await guessDuringKill(round, '0043')
        for (const [nth, { status }] of guessed.entries()) {
          const triesLeft = status === 'fulfilled' ? 2 : 3
          await eventually(async () =>
            expect(await codes.look(owners[nth] as CodeOwner)).toMatchObject({ triesLeft }),
          )
        }
        return guessed
      }),
  )

  test.each(rounds)(
    'I23, round %i: a pass whose use ended in an error can be used, once',
    (round) =>
      untilCut(async () => {
        const once = closeLater(createOnce(await connect('command'), 300_000))
        const passes = people.map((to) => `test:pass:${newId()}:${to}`)
        const taken = await killDuring(round, () =>
          Promise.allSettled(passes.map((pass) => once.take(pass, newId(), 300_000))),
        )
        for (const [nth, { status }] of taken.entries()) {
          const pass = passes[nth] as string
          if (status === 'fulfilled') expect(taken[nth]).toMatchObject({ value: 1 })
          else await eventually(async () => expect(await once.take(pass, newId(), 300_000)).toBe(1))
          expect(await eventually(() => once.take(pass, newId(), 300_000))).toBe(0)
        }
        return taken
      }),
  )

  test.each(rounds)(
    'round %i: an attempt is counted once at most, and not if its call has an id and ended in an error',
    (round) =>
      untilCut(async () => {
        const limiter = createLimiter({
          policies: { login: [{ name: 'tries', key: '{user}', sliding: '9 per 1h' }] },
          redis: await connect('limiter'),
          deadlineMs: 5_000,
        })
        releaseLater(() => limiter.close())
        const usedBy = async (user: string) => (await limiter.peek('login', { user }))[0]?.used
        const users = people.map(() => newId())
        const counted = await killDuring(round, () =>
          Promise.allSettled(
            users.map((user, nth) =>
              limiter.acquire('login', { user }, nth % 2 === 0 ? {} : { requestId: newId() }),
            ),
          ),
        )
        for (const [nth, { status }] of counted.entries()) {
          const hasId = nth % 2 === 1
          const user = users[nth] as string
          if (hasId && status === 'rejected') {
            await eventually(async () => expect(await usedBy(user)).toBe(0))
          } else {
            expect(await eventually(() => usedBy(user))).toBeLessThanOrEqual(1)
          }
        }
        return counted
      }),
  )

  test('a slot moves to another node → each use is answered, once, while it moves and after', async () => {
    const redis = await connect('command')
    const once = closeLater(createOnce(redis, 300_000))
    const [from, to] = killers as [Redis, Redis]
    const ids = await Promise.all([from, to].map((node) => node.call('CLUSTER', 'MYID')))
    // The first node has the first third of the slots.
    let key = ''
    let slot = 16_384
    for (let nth = 0; slot >= 5_461; nth++) {
      key = `test:moving:${nth}`
      slot = (await from.call('CLUSTER', 'KEYSLOT', key)) as number
    }
    const useOnce = async (name: string) => {
      expect(await once.take(name, newId(), 300_000)).toBe(1)
      expect(await once.take(name, newId(), 300_000)).toBe(0)
    }
    await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', ids[0] as string)
    await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', ids[1] as string)
    await useOnce(`{${key}}1`)
    for (const node of [to, from])
      await node.call('CLUSTER', 'SETSLOT', slot, 'NODE', ids[1] as string)
    expect(await once.take(`{${key}}1`, newId(), 300_000)).toBe(0)
    await useOnce(`{${key}}2`)
  })
})
