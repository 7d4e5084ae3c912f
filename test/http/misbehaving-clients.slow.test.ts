/** Clients that misbehave below HTTP, all at once, at every door: of an API process, and of a host app. */
import { expect, test } from 'vitest'
import { clientOf as browserOf } from '../console/open-console.ts'
import { apiKey } from '../tools/api-key.ts'
import { type TestDatabase, testDatabase } from '../tools/database.ts'
import {
  endedWell,
  type Misbehaviour,
  misbehave,
  misbehaviours,
} from '../tools/misbehaving-client.ts'
import { clientOf, posternEnv, processEnv, startInHost } from '../tools/postern.ts'
import { mostMb, shippedFlags, startProcess } from '../tools/processes.ts'
import { testRedis } from '../tools/redis.ts'
import { eventually } from '../tools/wait.ts'
import { type Door, doorsOf, doorsPolicyFile } from './doors.ts'

/** Longer than any time limit of the server, and shorter than it keeps idle connections. */
const withinMs = 60_000

type Chosen = (one: Misbehaviour, door: Door) => boolean

/** All misbehaviours that are chosen, at all doors at once. Returns those that did not end well. */
async function misbehaveAt(
  doors: Readonly<Record<string, Door>>,
  urlOf: Readonly<Record<Door['at'], string>>,
  isChosen: Chosen,
) {
  const wrong: object[] = []
  let answered = 0
  async function one(name: string, door: Door, misbehaviour: Misbehaviour): Promise<void> {
    const asked = door.ask()
    const ending = await misbehave(urlOf[door.at], misbehaviour.deeds(asked), withinMs)
    // A busy process has refused it, which changes nothing.
    if (ending.statuses.includes(503)) return one(name, door, misbehaviour)
    if (door.isSend) answered += ending.statuses.filter((status) => status === door.status).length
    if (endedWell(misbehaviour, asked, ending, door.status)) return
    wrong.push({ name, statuses: ending.statuses.join(' '), afterMs: ending.afterMs })
  }
  await Promise.all(
    Object.entries(doors).flatMap(([place, door]) =>
      Object.entries(misbehaviours)
        .filter(([, chosen]) => isChosen(chosen, door) && fits(chosen, door))
        .map(([name, chosen]) => one(`${name}: ${place}`, door, chosen)),
    ),
  )
  return { wrong, answered }
}

const fits: Chosen = (one, door) => !one.isOfReading || door.reads === true
const isOfServer: Chosen = (one, door) => one.isOfServer?.(door.ask()) ?? false
const isExact: Chosen = (one) => one.isWhole === true && one.last !== undefined

/** The number of rows in each table. */
async function rowsOf({ pool }: TestDatabase) {
  const { rows } = await pool.query(
    `SELECT relname, (xpath('/row/n/text()', query_to_xml(format('SELECT count(*) AS n FROM %I', relname), true, true, '')))[1]::text::int AS n
     FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = current_schema()::regnamespace`,
  )
  return Object.fromEntries(rows.map(({ relname, n }) => [relname, n])) as Record<string, number>
}

const p95 = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.95)] as number

test('clients that send slowly, without end, half, too much or nonsense, and read nothing, at every door of an API process → each is ended; unfinished requests leave no row, memory is bounded, and another caller is served', async () => {
  const [redis, database] = await Promise.all([testRedis(), testDatabase()])
  const env = processEnv({ policyFile: doorsPolicyFile, redis, database })
  const api = await startProcess('api', { env: { ...env, NODE_OPTIONS: shippedFlags } })
  const key = env.BOOTSTRAP_SECRET_KEY as string
  const browser = browserOf(api)
  await browser.signIn(await apiKey(database, { kind: 'operator', app: '*' }))
  const doors = doorsOf(key, browser.cookie())
  const urlOf = { api: api.url, admin: api.adminUrl }
  const { post } = clientOf(api.url, key)

  let honest = 0
  /** One send after the other, until `isEnough`. */
  async function sendGood(isEnough: (count: number) => boolean): Promise<number[]> {
    const tookMs: number[] = []
    while (!isEnough(tookMs.length)) {
      const to = `+86137${String(++honest).padStart(8, '0')}`
      const startMs = performance.now()
      await eventually(async () => {
        expect((await post('/v1/captchas', { channel: 'sms', to })).status).toBe(202)
      })
      tookMs.push(performance.now() - startMs)
    }
    return tookMs
  }
  const quietMs = p95(await sendGood((count) => count === 120))

  const before = await rowsOf(database)
  let isOver = false
  const [unfinished, besideMs] = await Promise.all([
    misbehaveAt(doors, urlOf, (one) => !one.isWhole || one.isOfReading === true).finally(() => {
      isOver = true
    }),
    sendGood(() => isOver),
  ])
  expect(unfinished.wrong).toEqual([])
  // Support sees a sample of the decisions about the other caller, some time after they were made.
  const { decision = 0, ...after } = await rowsOf(database)
  expect({ ...after, decision: before.decision }).toEqual({ ...before, notice: honest })
  expect(decision).toBeLessThanOrEqual(honest)

  const whole = await misbehaveAt(
    doors,
    urlOf,
    (one, door) => isExact(one, door) && !one.isOfReading,
  )
  expect(whole.wrong).toEqual([])
  expect((await rowsOf(database)).notice).toBe(honest + whole.answered)
  const others = await misbehaveAt(
    doors,
    urlOf,
    (one, door) => !!one.isWhole && !isExact(one, door) && !one.isOfReading,
  )
  expect(others.wrong).toEqual([])

  const mb = await mostMb(api)

  expect(api.hasExited()).toBe(false)
  const metrics = await (await fetch(`${api.adminUrl}/metrics`)).text()
  expect(metrics.match(/^postern_requests_total\{.*status="500".*\} [1-9].*$/gm)).toBeNull()
  expect(mb).toBeLessThan(350)
  // Behind requests that are waited for, it would take longer, also on a busy machine.
  expect(p95(besideMs)).toBeLessThan(Math.max(3 * quietMs, 5_000))
}, 300_000)

test('the same at the doors of the router in a host app, whose server has its own limits → each is ended', async () => {
  const [redis, database] = await Promise.all([testRedis(), testDatabase()])
  const env = posternEnv({ policyFile: doorsPolicyFile, redis, database })
  const { url } = await startInHost('/otp', env, redis.prefix, { api: true, worker: false })
  const doors = Object.entries(doorsOf(env.BOOTSTRAP_SECRET_KEY as string, ''))
    .filter(([, { at }]) => at === 'api')
    .map(([name, door]) => {
      const ask = () => ({ ...door.ask(), path: `/otp${door.ask().path}` })
      return [name, { ...door, ask }] as const
    })
  const { wrong } = await misbehaveAt(
    Object.fromEntries(doors),
    { api: url, admin: '' },
    (one, door) => !isOfServer(one, door),
  )
  expect(wrong).toEqual([])
}, 120_000)
