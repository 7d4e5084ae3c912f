/**
 * Plays a day against a service, one request at a time. The clock stands still while the service works on a request, and
 * then moves to the next. So decisions do not depend on the speed of the machine.
 */
import { type Attack, type Day, peopleOf, type Visit } from './day.ts'
import type { Arrival, Provider } from './provider.ts'
import type { Challenged, Checked, Press, Sent, Service } from './service.ts'
import { until } from './until.ts'

export interface Played {
  readonly people: People
  /** Owners of the attacked numbers. */
  readonly owners: People
  /** By kind of attack. */
  readonly attacks: Readonly<Record<AttackKind, Attackers>>
  /** Accepted, and no message came. */
  lost: number
  /** Milliseconds from the press to the provider, of honest people. */
  readonly latencies: number[]
  /** Digits. */
  codeLength: number
}

/** People who wanted to type a code. */
interface People {
  wanted: number
  /** Typed a right code in time. */
  passed: number
  refused: number
  challenged: number
}

const attackKinds = ['pumping', 'typing', 'bombing', 'guessing', 'guessingMany'] as const
export type AttackKind = (typeof attackKinds)[number]

interface Attackers {
  requests: number
  messages: number
  challenged: number
  /** Right codes that were typed. */
  passed: number
  /** Guesses that were compared with a code. */
  compared: number
}

/** A person who must wait longer leaves the page. */
const patienceMs = 90_000
/** Longer than the life of a code. */
const lateMs = 6 * 60_000
/** A service may be busy this long with one message. Then the clock runs, because a second try may wait by it. */
const busyMs = 5_000
/** The message is lost. */
const lostMs = 60_000

const noPeople = (): People => ({ wanted: 0, passed: 0, refused: 0, challenged: 0 })
const noAttackers = (): Attackers => ({
  requests: 0,
  messages: 0,
  challenged: 0,
  passed: 0,
  compared: 0,
})

/** Never the right code: a lucky guess would be luck of one run. Its chance is computed in the table. */
const wrongFor = (code: string) =>
  code.replace(/\d$/, (digit) => String((Number(digit) + 1) % 10)) || '000000'

interface Stage {
  readonly service: Service
  readonly provider: Provider
  readonly setTime: (atMs: number) => void
  readonly countries?: readonly string[] | undefined
}

export async function play(day: Day, stage: Stage): Promise<Played> {
  const { service, provider, setTime, countries } = stage
  const attacks = Object.fromEntries(attackKinds.map((kind) => [kind, noAttackers()]))
  const played: Played = {
    people: noPeople(),
    owners: noPeople(),
    attacks: attacks as Record<AttackKind, Attackers>,
    lost: 0,
    latencies: [],
    codeLength: 0,
  }
  const { at, run, pass } = createSchedule(setTime)
  const known = new Map<string, string>()

  /** The answer after all challenges, or the challenge for those who solve none. */
  async function answerOf<Result extends Sent | Checked>(
    counts: { challenged: number },
    first: Result,
    solves: boolean,
  ): Promise<Result> {
    if (first.is !== 'challenged') return first
    counts.challenged += 1
    return solves ? await (first as Challenged<Result>).solve() : first
  }

  /** Presses. Returns the message of an accepted press, and otherwise how the service answered. */
  async function press(who: Press, counts: { challenged: number }, solves: boolean) {
    const before = provider.messagesTo(who.to).length
    const startMs = performance.now()
    const sent = await answerOf(counts, await service.send(who), solves)
    if (sent.is !== 'accepted') return { sent }
    await untilHandled(() => provider.messagesTo(who.to).length > before)
    const message = provider.messagesTo(who.to)[before]
    if (message) played.codeLength = message.code.length
    else played.lost += 1
    return { sent, message, startMs }
  }

  async function untilHandled(hasArrived: () => boolean): Promise<void> {
    const isDone = async () => hasArrived() && ((await service.isQuiet?.()) ?? true)
    for (let waitedMs = busyMs; !(await until(isDone, busyMs)); waitedMs += busyMs) {
      if (waitedMs >= lostMs) return
      pass(busyMs)
    }
  }

  async function check(who: Press, code: string, counts: { challenged: number }) {
    const checked = await answerOf(counts, await service.check({ ...who, code }), true)
    if (checked.is === 'passed' && checked.known) known.set(who.to, checked.known)
    return checked
  }

  function arrive(visit: Visit, counts: People): void {
    const { channel, to, ip, habit, typingMs } = visit
    const who = (): Press => ({ channel, to, ip, known: known.get(to) })
    if (habit !== 'leaves') counts.wanted += 1
    at(visit.atMs, (nowMs) => begin(nowMs, 1))

    async function begin(nowMs: number, presses: number): Promise<void> {
      const asked = { challenged: 0 }
      const { sent, message, startMs } = await press(who(), asked, true)
      counts.challenged += asked.challenged
      if (message) {
        played.latencies.push(message.atMs - startMs)
        read(nowMs, presses, message)
        return
      }
      if (sent.is !== 'refused') return
      // Whole seconds, as a page shows them, and a moment more.
      const waitMs = Math.ceil((sent.waitMs ?? patienceMs * 2) / 1_000) * 1_000 + 2_000
      if (presses === 1 && waitMs <= patienceMs) at(nowMs + waitMs, (next) => begin(next, 2))
      else counts.refused += 1
    }

    function read(nowMs: number, presses: number, message: Arrival): void {
      if (habit === 'leaves') return
      const type = async () => void (await finish(message.code))
      if (habit === 'asks again' && presses === 1) at(nowMs + 65_000, (next) => begin(next, 2))
      else if (habit === 'types late' && presses === 1) {
        at(nowMs + lateMs, async (next) => {
          if (!(await finish(message.code))) at(next + 5_000, (later) => begin(later, 2))
        })
      } else if (habit === 'mistypes') {
        at(nowMs + typingMs, async (next) => {
          await check(who(), wrongFor(message.code), counts)
          at(next + 10_000, type)
        })
      } else at(nowMs + typingMs, type)
    }

    async function finish(code: string): Promise<boolean> {
      const hasPassed = (await check(who(), code, counts)).is === 'passed'
      if (hasPassed) counts.passed += 1
      return hasPassed
    }
  }

  function attack(kind: AttackKind, { atMs, to, ip }: Attack): void {
    const counts = played.attacks[kind]
    const who: Press = { channel: 'sms', to, ip }
    const isGuessing = kind === 'guessing' || kind === 'guessingMany'
    async function send(nowMs: number): Promise<void> {
      counts.requests += 1
      const { message } = await press(who, counts, isGuessing || kind === 'typing')
      if (!message) return
      counts.messages += 1
      if (kind !== 'typing') return
      at(nowMs + 20_000, async () => {
        if ((await check(who, message.code, counts)).is === 'passed') counts.passed += 1
      })
    }
    async function guess(): Promise<void> {
      counts.requests += 1
      const code = wrongFor(provider.messagesTo(to).at(-1)?.code ?? '')
      if ((await check(who, code, counts)).is === 'wrong') counts.compared += 1
    }
    at(atMs, send)
    if (!isGuessing) return
    for (const waitMs of [5_000, 10_000, 15_000]) at(atMs + waitMs, guess)
  }

  for (const visit of peopleOf(day, countries)) arrive(visit, played.people)
  for (const visit of day.owners) arrive(visit, played.owners)
  for (const kind of attackKinds) for (const one of day[kind]) attack(kind, one)
  await run()
  return played
}

type Step = (nowMs: number) => void | Promise<void>

/** Steps run in the order of their times, and of their planning where these are equal. */
function createSchedule(setTime: (atMs: number) => void) {
  /** In the order of their running. */
  const steps: { atMs: number; step: Step }[] = []
  let nowMs = 0
  const goTo = (atMs: number) => {
    nowMs = Math.max(nowMs, atMs)
    setTime(nowMs)
  }
  return {
    /** Time passes within a step. */
    pass: (ms: number) => goTo(nowMs + ms),
    at(atMs: number, step: Step): void {
      let [low, high] = [0, steps.length]
      while (low < high) {
        const middle = (low + high) >> 1
        if ((steps[middle]?.atMs ?? 0) <= atMs) low = middle + 1
        else high = middle
      }
      steps.splice(low, 0, { atMs, step })
    },
    async run(): Promise<void> {
      for (let next = steps.shift(); next; next = steps.shift()) {
        goTo(next.atMs)
        await next.step(next.atMs)
      }
    },
  }
}
