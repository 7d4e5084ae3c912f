/**
 * `npm run bench -- attack [people] [title] [row]`: the cost of attacks for the attacker, for Postern, and for people. The tables of
 * docs/abuse.md.
 *
 * It plays days with one attack each (field/attack-days.ts) in the harness of the field's benchmark. It does so for each
 * shipped policy file, and for single rules of the strict one beside the plain limits. Some attackers solve all challenges, some solve
 * none. Challenges are a hundredth as hard here as in production. The cost of solving is measured on real ones.
 *
 * Requests of a few minutes run at once, so a figure of a few may differ by one or two between runs.
 */
import { solveChallenge } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import { parse, stringify } from 'yaml'
import { createAltcha } from '../src/captcha/altcha.ts'
import { createSecrets } from '../src/crypto/secrets.ts'
import {
  type PolicyFile,
  posternWith,
  productionTries,
  readPolicy,
} from './field/adapters/postern.ts'
import {
  bombingDay,
  guessedNumbers,
  guessedOwner,
  mailAttacks,
  mailDay,
  ownerDays,
  pumpingDay,
} from './field/attack-days.ts'
import type { Day } from './field/day.ts'
import { type Played, play } from './field/play.ts'
import { openDayWorld } from './field/world.ts'
import { secret } from './harness/bench.ts'
import { openTable } from './harness/table.ts'

const people = Number(process.argv[2] ?? 3_000)
/** Patterns: only tables whose title matches, and rows whose name does. */
const wantedTitle = new RegExp(process.argv[3] ?? '', 'i')
const wantedRow = new RegExp(process.argv[4] ?? '', 'i')
/** Worlds of one table that are played at once: most of their time goes by in waiting for answers. */
const worldsAtOnce = 3
const smsPrice = 0.06

type Rule = { name: string; key: string; mode?: string }
type File = PolicyFile & {
  code: object
  policies: { captcha: Rule[]; check: Rule[] }
  browser?: { rules?: Rule[] }
}
type Files = Readonly<Record<string, File>>

const read = (name: string) => readPolicy(name) as File
const [starter, strict] = [read('starter'), read('strict')]
const plainNames = ['duplicate', 'recipient', 'ip', 'daily']

/** The strict policy, reduced to the limits per person, address and day and to one other rule. */
function withOnly(name?: string): File {
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

const shipped = { starter, strict, china: read('china'), global: read('global') }
const files: Files = { 'limits per person, address and day': withOnly(), starter, strict }
const singleRules: Files = Object.fromEntries(
  [...strict.policies.captcha, ...(strict.browser?.rules ?? [])]
    .map(({ name }) => name)
    .filter((name) => !plainNames.includes(name))
    .map((name) => [name, withOnly(name)]),
)
/** Rules by a part of a mail address, also by its domain, which no shipped file has. */
const mailRules: Files = Object.fromEntries(
  ['unverified', 'prefix', 'prefix-day'].flatMap((name) => {
    const file = withOnly(name)
    const byDomain = parse(stringify(file).replaceAll('{block}', '{prefix}')) as File
    const key = file.policies.captcha.find((rule) => rule.name === name)?.key ?? ''
    const both = key.includes('{block}') ? { [`${name} by {prefix}`]: byDomain } : {}
    return [[`${name} by ${key}`, file], ...Object.entries(both)]
  }),
)

process.setMaxListeners(400)
const solveMs = await measureChallenge()
console.log(`\nA challenge costs who solves it ${solveMs.toFixed(0)} ms of this processor.`)

const columns = ['messages', 'price', 'asked', 'solved', 'their s of processor']
const attackers = ({ attackers: { attack } }: Played) => {
  const { messages = 0, challenged = 0, solved = 0 } = attack ?? {}
  const seconds = ((solved * solveMs) / 1_000).toFixed(0)
  return [messages, (messages * smsPrice).toFixed(0), challenged, solved, seconds]
}
const percent = (count = 0, of = 0) => (of === 0 ? '–' : `${((100 * count) / of).toFixed(2)} %`)
const group =
  (name: string) =>
  ({ people }: Played) => {
    const { wanted, refused, challenged } = people[name] ?? {}
    return [percent(refused, wanted), percent(challenged, wanted)]
  }
const byPeople = ['people refused', 'challenges for people']
const pumped = (solves: boolean, { recipients }: File) =>
  pumpingDay(people, recipients?.countries, solves)

const numbers = 'Pumping: rented numbers'
await playTable(numbers, files, pumped, [...columns, ...byPeople], attackers, group('people'))
const one = 'Pumping, one rule beside the limits per person, address and day'
await playTable(one, singleRules, pumped, [...columns, ...byPeople], attackers, group('people'))
await playTable(
  'Bombing of one number',
  files,
  (solves, { recipients }) => bombingDay(people, recipients?.countries, solves),
  [...columns, 'owner refused', 'challenges for the owner', ...byPeople],
  ...[attackers, group('owner'), group('people')],
)
for (const [name, invent] of Object.entries(mailAttacks)) {
  const inventing = (solves: boolean, { recipients }: File) =>
    mailDay(people, invent, recipients?.countries, solves)
  const byChannel = ['mail', 'SMS'].flatMap((how) => byPeople.map((what) => `${what} by ${how}`))
  const cells = [attackers, group('mail'), group('sms')]
  await playTable(`Mail, ${name}`, shipped, inventing, [...columns, ...byChannel], ...cells)
  if (name !== 'invented') continue
  const title = 'Mail, invented, one rule'
  await playTable(title, mailRules, inventing, [...columns, ...byChannel], ...cells)
}
const guessing = ['requests', 'compared', 'solved', 'chance that one is right']
/** `times`: as often as this. */
const guesses =
  (name: string, times: number) =>
  ({ attackers, codeLength }: Played) => {
    const { requests = 0, compared = 0, solved = 0 } = attackers[name] ?? {}
    const chance = 1 - (1 - 10 ** -codeLength) ** (compared * times)
    return [requests, compared, solved, percent(chance, 1)]
  }
for (const [title, isKnown, bombs] of [
  ['Guessing, owner in a new browser', false, 0],
  ['Guessing, owner in a known browser', true, 0],
  ['Guessing and bombing, owner in a known browser', true, 20],
] as const) {
  const owner = ({ people: { owner }, attackers: { guesses, bombs } }: Played) => [
    ...[(guesses?.compared ?? 0) / ownerDays],
    ...[((owner?.messages ?? 0) + (bombs?.messages ?? 0)) / ownerDays],
    `${(owner?.wanted ?? 0) - (owner?.passed ?? 0)} of ${owner?.wanted}`,
  ]
  const ofOwner = ['compared a day', 'messages a day', 'sign-ins that fail']
  const day = (solves: boolean) => guessedOwner(isKnown, bombs, solves)
  await playTable(
    title,
    shipped,
    day,
    [...guessing, ...ofOwner],
    guesses('guesses', 12 / ownerDays),
    owner,
  )
}
const many = (solves: boolean) => guessedNumbers(Math.round((people * 5) / 3), solves)
await playTable('Guessing at many numbers', files, many, guessing, guesses('attack', 1))

/** A row for each file, and for attackers who solve challenges, if it asks them. */
async function playTable(
  title: string,
  files: Files,
  dayOf: (solves: boolean, file: File) => Day,
  columns: readonly string[],
  ...cells: readonly ((played: Played) => (string | number)[])[]
): Promise<void> {
  if (!wantedTitle.test(title)) return
  const rows = Object.entries(files)
    .filter(([name]) => wantedRow.test(name))
    .flatMap(([name, file]) =>
      [false, true]
        .filter((solves) => !solves || asks(file))
        .map((solves) => ({ name, file, solves })),
    )
  const row = openTable(title, 'they solve', ...columns)
  for (let first = 0; first < rows.length; first += worldsAtOnce) {
    const some = rows.slice(first, first + worldsAtOnce).map(async ({ name, file, solves }) => {
      const played = await playAlone(name, file, dayOf(solves, file))
      return [name, solves ? 'all' : 'none', ...cells.flatMap((of) => of(played))] as const
    })
    for (const [name, ...all] of await Promise.all(some)) row(name, ...all)
  }
}

async function playAlone(name: string, file: File, day: Day): Promise<Played> {
  const world = await openDayWorld()
  const service = await posternWith(name, file).start(world)
  const { provider, clock } = world
  try {
    return await play(day, { service, provider, setTime: clock.setTime })
  } finally {
    await service.close()
    await world.close()
  }
}

/** True if a rule for sends demands a challenge. */
function asks({ policies, browser }: File): boolean {
  return [policies.captcha, browser?.rules].flat().some((rule) => rule?.mode === 'challenge')
}

/** Processor time of this thread for a challenge of full hardness, a mean. */
async function measureChallenge(): Promise<number> {
  const count = 20
  const altcha = createAltcha({
    secrets: createSecrets(secret),
    tries: productionTries,
    nowMs: Date.now,
  })
  let micros = 0
  for (let index = 0; index < count; index++) {
    const offer = await altcha.offer({ app: 'shop', keyId: 'key', origins: [] }, 1)
    if (!('challenge' in offer)) throw new Error('no challenge is offered')
    const before = process.cpuUsage()
    await solveChallenge({ challenge: offer.challenge, deriveKey })
    const { user, system } = process.cpuUsage(before)
    micros += user + system
  }
  return micros / count / 1_000
}
