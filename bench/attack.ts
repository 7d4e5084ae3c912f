/**
 * `npm run bench -- attack`: the cost of attacks for the attacker, for Postern, and for honest people.
 *
 * A day of a sign-up page is played against the real API, for each shipped policy. The limits use the clock of that
 * day. There are 3,000 honest people and one attack: pumping (10,000 rented numbers with 20 prefixes in 5 countries,
 * requested from 1,000 addresses) or the bombing of one number. Some attackers solve all challenges, some solve none.
 * Then each rule of the strict policy is tried alone beside the plain limits. Half of the honest people sign up by mail
 * on a day with attackers who invent mail addresses.
 *
 * Challenges are a hundredth as hard here as in production. The cost of solving is measured on real ones. Then come
 * guessing and floods without a key, which need no day.
 *
 *   npx node bench/attack.ts [honest people] [only scenarios whose name contains this]
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Challenge, solveChallenge } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import pg from 'pg'
import { parse, stringify } from 'yaml'
import { createKeyToken } from '../src/access/key-token.ts'
import { createAltcha } from '../src/captcha/altcha.ts'
import { createSecrets } from '../src/crypto/secrets.ts'
import { start as startRoles } from '../src/main/compose.ts'
import { loadConfig } from '../src/main/load-config.ts'
import { priceOf } from '../src/rules/price-of.ts'
import { bombingDay, createDraw, honestDay, pumpingDay, type Visit } from './attack/day.ts'
import { guessMany, guessOne } from './attack/guess.ts'
import { honestMailDay, type Invent, mailAttack, mailAttacks } from './attack/mail.ts'
import { play } from './attack/play.ts'
import type { World } from './attack/world.ts'
import { flood, validSend } from './flood.ts'
import { key as honestKey, openBench, repository, secret } from './harness/bench.ts'
import { openTable } from './harness/table.ts'

const people = Number(process.argv[2] ?? 3_000)
const wanted = process.argv[3] ?? ''
const seed = 20_261_122
/** The default of the policy file. */
const altchaTries = 3_000
/** In production a challenge is this many times harder. */
const easierBy = 100

type PolicyFile = Record<string, unknown> & { recipients?: { countries?: string[] } }

const floods = ['a wrong key with its checksum', 'preflights of ever new origins', 'unknown paths']

const bench = await openBench()
const database = new pg.Pool({ connectionString: bench.postgres.url, max: 4 })
// An error is shown where it began, not where the bench then stops its servers.
database.on('error', () => {})
bench.closeLater(() => database.end())
const secrets = createSecrets(secret)
const key = createKeyToken('publishable')
await database.query(
  `INSERT INTO api_key (id, app, name, kind, hash, created_at, origins)
   VALUES (gen_random_uuid(), 'shop', 'page', 'publishable', $1, now(), '{https://shop.example}')`,
  [createHash('sha256').update(key).digest()],
)

let worlds = 0
/** Plays the scenario in a separate world with this policy file. */
async function inWorld<Result>(
  policyFile: PolicyFile,
  isSolving: boolean,
  work: (world: World) => Promise<Result>,
): Promise<Result> {
  // Redis expires keys by its own clock. So the clock of the day begins with Redis' clock and only moves forward.
  const startMs = Date.now()
  let nowMs = startMs
  const path = join(repository, 'policies', 'strict.yaml')
  const loaded = await loadConfig(
    {
      DATABASE_URL: bench.postgres.url,
      REDIS_URL: bench.redis.url,
      SECRET: secret,
      TRUST_PROXY_HOPS: '1',
      HOST: '127.0.0.1',
      PORT: '0',
      ADMIN_PORT: '0',
      LOG_LEVEL: 'silent',
    },
    {
      text: stringify({
        ...policyFile,
        challenge: { kind: 'altcha', tries: altchaTries / easierBy },
      }),
      path,
    },
  )
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  const running = await startRoles(
    loaded.config,
    { api: true, worker: false },
    {
      keyPrefix: `world${worlds++}:`,
      clock: () => nowMs,
    },
  )
  const { prices, code } = loaded.config.file
  try {
    return await work({
      url: running.addresses.api ?? '',
      key,
      codeLength: code.length,
      isSolving,
      setTime(atMs) {
        nowMs = Math.max(nowMs, startMs + atMs)
      },
      priceOf: ({ channel, country }) => priceOf(prices, channel, country),
      solve,
      async readCode(noticeId) {
        const { rows } = await database.query('SELECT sealed_params FROM notice WHERE id = $1', [
          noticeId,
        ])
        return JSON.parse(secrets.unseal(rows[0].sealed_params, noticeId)).code
      },
    })
  } finally {
    await running.close()
  }
}

/** A challenge of full hardness, or in a world an easy one. */
async function solve(challenge: unknown): Promise<string> {
  const solution = await solveChallenge({ challenge: challenge as Challenge, deriveKey })
  return Buffer.from(JSON.stringify({ challenge, solution })).toString('base64')
}

const fileOf = (name: string) =>
  parse(readFileSync(join(repository, 'policies', `${name}.yaml`), 'utf8')) as PolicyFile & {
    code: object
    policies: { captcha: Rule[]; check: Rule[] }
    browser?: { rules?: Rule[] }
  }
type Rule = { name: string; key: string; mode?: string }

const strict = fileOf('strict')
const starter = fileOf('starter')
const plainNames = ['duplicate', 'recipient', 'ip', 'daily']
/** The strict policy, reduced to the limits per person, address and day and to one other rule. */
function withOnly(name?: string): typeof strict {
  const isKept = (rule: Rule) => plainNames.includes(rule.name) || rule.name === name
  return {
    ...strict,
    code: starter.code,
    policies: {
      ...strict.policies,
      captcha: strict.policies.captcha.filter(isKept),
      check: strict.policies.check.filter(({ name }) => name === 'guesses'),
    },
    browser: { ...strict.browser, rules: strict.browser?.rules?.filter(isKept) ?? [] },
  }
}
const defences = [...strict.policies.captcha, ...(strict.browser?.rules ?? [])]
  .map(({ name }) => name)
  .filter((name) => !plainNames.includes(name))

const policies: Record<string, PolicyFile> = {
  'limits per person, address and day': withOnly(),
  starter,
  strict,
}

const shipped = {
  starter,
  strict,
  china: fileOf('china'),
  global: fileOf('global'),
}
/** Rules by a part of a mail address, also by its domain, which no shipped file has. */
const mailRules = Object.fromEntries(
  ['unverified', 'prefix', 'prefix-day'].flatMap((name) => {
    const file = withOnly(name)
    const byDomain = parse(stringify(file).replaceAll('{block}', '{prefix}')) as PolicyFile
    const key = file.policies.captcha.find((rule) => rule.name === name)?.key ?? ''
    const both = key.includes('{block}') ? { [`${name} by {prefix}`]: byDomain } : {}
    return [[`${name} by ${key}`, file], ...Object.entries(both)]
  }),
)

/** Owners of the number that is guessed, and sends of attackers beside each sign-in. */
const owners = [
  { isKnown: false, bombs: 0 },
  { isKnown: true, bombs: 0 },
  { isKnown: true, bombs: 20 },
]

const cost = await measureChallenge()
console.log(
  `\nA challenge costs who solves it ${cost.solveMs.toFixed(0)} ms of this processor (mean of ${cost.count}); to make and to look at it costs Postern ${cost.ownMs.toFixed(1)} ms.`,
)

const pumping = () => {
  const draw = createDraw(seed)
  return [...honestDay(people, draw), ...pumpingDay(draw)]
}
const bombing = () => {
  const draw = createDraw(seed)
  return [...honestDay(people, draw), ...bombingDay(draw)]
}

try {
  await playDays('Pumping: 10,000 rented numbers', pumping, policies)
  await playDays(
    'Pumping, one defence beside the limits per person, address and day',
    pumping,
    Object.fromEntries(defences.map((name) => [name, withOnly(name)])),
  )
  await playDays('Bombing: 5,000 requests for one number', bombing, policies)
  await playMail('Mail, each file', mailAttacks, shipped)
  const { 'at one domain': atOneDomain } = mailAttacks
  await playMail('Mail, one rule', { 'at one domain': atOneDomain }, mailRules)
  await playOwners()
  await playGuesses()
  await playFloods()
} finally {
  await bench.close()
}

/** True if a rule for sends demands a challenge. */
function asks({ policies, browser }: PolicyFile): boolean {
  const rules = [(policies as { captcha?: Rule[] }).captcha, (browser as { rules?: Rule[] })?.rules]
  return rules.flat().some((rule) => rule?.mode === 'challenge')
}

async function playDays(
  title: string,
  dayOf: () => Visit[],
  files: Readonly<Record<string, PolicyFile>>,
): Promise<void> {
  if (!title.toLowerCase().includes(wanted)) return
  const row = openTable(
    title,
    'attackers solve',
    'messages to attackers',
    'price',
    'refused',
    'asked',
    'solved',
    'their s of processor',
    'our s',
    'honest people',
    'lost',
    'lost %',
    'asked %',
  )
  for (const [name, file] of Object.entries(files)) {
    for (const isSolving of [false, true]) {
      if (isSolving && !asks(file)) continue
      const { attack, sms: honest } = await inWorld(file, isSolving, (world) =>
        play(dayOf(), world),
      )
      row(
        name,
        isSolving ? 'all' : 'none',
        attack.messages,
        (attack.price / 1_000).toFixed(0),
        attack.refused,
        attack.asked,
        attack.solved,
        ((attack.solved * cost.solveMs) / 1_000).toFixed(0),
        (((attack.asked + honest.asked) * cost.ownMs) / 1_000).toFixed(1),
        honest.visits,
        honest.lost,
        ((100 * honest.lost) / honest.visits).toFixed(2),
        ((100 * honest.asked) / honest.visits).toFixed(2),
      )
      const rules = Object.entries({ ...attack.byRule }).map(([rule, count]) => `${rule} ${count}`)
      const ofHonest = Object.entries(honest.byRule).map(([rule, count]) => `${rule} ${count}`)
      console.error(
        `  refused: attackers by ${rules.join(', ')}; honest people by ${ofHonest.join(', ')}`,
      )
    }
  }
}

/** Half of the honest people sign up by mail. Attackers invent addresses. */
async function playMail(
  title: string,
  attacks: Readonly<Record<string, Invent>>,
  files: Readonly<Record<string, PolicyFile>>,
): Promise<void> {
  if (!title.toLowerCase().includes(wanted)) return
  const row = openTable(
    title,
    'addresses of attackers',
    'they solve',
    'messages to them',
    'refused',
    'asked',
    'solved',
    'people by mail',
    'lost %',
    'asked %',
    'by SMS',
    'lost %',
    'asked %',
  )
  for (const [name, file] of Object.entries(files)) {
    const draw = createDraw(seed)
    const day = honestMailDay(people, draw, file.recipients?.countries)
    const worlds = Object.entries(attacks).flatMap(([kind, invent]) => {
      const visits = [...day, ...mailAttack(draw, day, invent)]
      return (visits.length > day.length && asks(file) ? [false, true] : [false]).map(
        async (isSolving) => {
          const played = await inWorld(file, isSolving, (world) => play(visits, world, 300_000))
          return [kind, isSolving, played] as const
        },
      )
    })
    // Most of the time goes by in waiting for answers, so the worlds of a file run at once.
    for (const [kind, isSolving, { attack, email, sms }] of await Promise.all(worlds)) {
      row(
        name,
        kind,
        isSolving ? 'all' : 'none',
        attack.messages,
        attack.refused,
        attack.asked,
        attack.solved,
        ...[email, sms].flatMap(({ visits, lost, asked }) => [
          visits,
          ((100 * lost) / visits).toFixed(2),
          ((100 * asked) / visits).toFixed(2),
        ]),
      )
      console.error(`  refused: ${JSON.stringify([attack.byRule, email.byRule, sms.byRule])}`)
    }
  }
}

/** Two owners under the same attack: one in a new browser, one in a browser that has signed in before. */
async function playOwners(): Promise<void> {
  if (!'guessing and bombing of one number'.includes(wanted)) return
  const row = openTable(
    'Guessing and bombing of one number, 12 days',
    'browser of the owner',
    'attackers solve',
    'guesses',
    'compared',
    'most a day',
    'solved',
    'chance of one right',
    'most messages a day',
    'sign-ins',
    'replaced code',
    'failed',
  )
  for (const [name, file] of Object.entries(shipped)) {
    for (const isSolving of [false, true]) {
      if (isSolving && !asks(file)) continue
      for (const owner of owners) {
        const one = await inWorld(file, isSolving, (world) => guessOne(world, owner))
        row(
          `${name}, ${owner.bombs === 0 ? 'guessing' : 'guessing and bombing'}`,
          owner.isKnown ? 'known' : 'new',
          isSolving ? 'all' : 'none',
          one.made,
          one.compared,
          one.comparedADay,
          one.solved,
          `${(100 * one.chance).toFixed(2)} %`,
          one.messagesADay,
          one.signIns,
          one.replaced,
          one.failedSignIns,
        )
      }
    }
  }
}

async function playGuesses(): Promise<void> {
  if (!'5,000 numbers'.includes(wanted)) return
  const row = openTable(
    'Guessing at 5,000 numbers, a day',
    'attackers solve',
    'guesses',
    'compared',
    'solved',
    'chance of one right',
  )
  for (const [name, file] of Object.entries(policies)) {
    for (const isSolving of [false, true]) {
      const many = await inWorld(file, isSolving, (world) => guessMany(world, 5_000))
      const chance = `${(100 * many.chance).toFixed(2)} %`
      row(name, isSolving ? 'all' : 'none', many.made, many.compared, many.solved, chance)
    }
  }
}

/** Strangers beside valid sends, in real time. `npm run bench -- keyless` measures every kind of stranger. */
async function playFloods(): Promise<void> {
  if (!'floods without a key'.includes(wanted)) return
  const { policies, ...others } = withOnly()
  const captcha = (policies as { captcha: Rule[] }).captcha.filter(({ name }) => name !== 'ip')
  const templates = join(repository, 'templates')
  const file = { ...others, policies: { ...(policies as object), captcha }, templates }
  const { url } = await bench.start('src/main/api.ts', file)
  const seconds = 5
  const row = openTable('Floods without a key, 1,000 a second', 'honest sends', 'lost')
  for (const kind of floods) {
    const options = { perSecond: 1_000, seconds, connections: 64 }
    const worker = new Worker(new URL('./flood-worker.ts', import.meta.url), {
      workerData: { url, kind, options },
    })
    const next = () => validSend(honestKey)
    const [honest] = await Promise.all([
      flood(url, { perSecond: 50, seconds, connections: 16, next }),
      once(worker, 'message'),
    ])
    row(kind, honest.sent, honest.sent - (honest.statuses.get(202) ?? 0))
  }
}

/** Processor time of this thread for challenges of full hardness. */
async function measureChallenge() {
  const count = 20
  const altcha = createAltcha({ secrets, tries: altchaTries, nowMs: Date.now })
  const asked = { app: 'shop', keyId: 'key', origins: [] }
  const answers: string[] = []
  const cpu = () => process.cpuUsage().user + process.cpuUsage().system
  let ownMicros = 0
  let solveMicros = 0
  for (let index = 0; index < count; index++) {
    const startMicros = cpu()
    const offer = await altcha.offer(asked, 1)
    const offeredMicros = cpu()
    answers.push(await solve('challenge' in offer ? offer.challenge : undefined))
    const solvedMicros = cpu()
    altcha.read(asked, answers.at(-1) as string)
    ownMicros += offeredMicros - startMicros + cpu() - solvedMicros
    solveMicros += solvedMicros - offeredMicros
  }
  return { count, solveMs: solveMicros / count / 1_000, ownMs: ownMicros / count / 1_000 }
}
