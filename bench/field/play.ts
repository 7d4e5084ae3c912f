/**
 * Plays a day against a service. Its clock stands still while the service works, and then moves to the next request. So
 * decisions do not depend on the speed of the machine.
 */
import type { Attack, Attackers, Day, Visit } from './day.ts'
import type { Arrival, Provider } from './provider.ts'
import { type Checked, type Press, type Sent, type Service, solvedAnswer } from './service.ts'
import { until } from './until.ts'

export interface Played {
  /** By the names of the day. */
  readonly people: Readonly<Record<string, PeopleCounts>>
  readonly attackers: Readonly<Record<string, AttackerCounts>>
  /** Accepted, and no message came. */
  lost: number
  /** Milliseconds from the press to the provider, of people. */
  readonly latencies: number[]
  /** Digits. */
  codeLength: number
}

interface PeopleCounts {
  /** People who want to type a code. */
  wanted: number
  /** Typed a right code in time. */
  passed: number
  refused: number
  challenged: number
  messages: number
}

interface AttackerCounts {
  requests: number
  messages: number
  challenged: number
  solved: number
  /** Guesses that were compared with a code. */
  compared: number
}

/** A person who must wait longer leaves the page. */
const patienceMs = 90_000
/** Longer than the life of a code. */
const lateMs = 6 * 60_000
/** A service may be busy this long with one message. Then the clock runs, because a second try may wait by it. */
const busyMs = 20_000
/** The message is lost. */
const lostMs = 60_000

/** Never the right code: a lucky guess would be luck of one run. Its chance is computed in the table. */
const wrongFor = (code: string) => code.replace(/\d$/, (digit) => String((Number(digit) + 1) % 10))

interface Stage {
  readonly service: Service
  readonly provider: Pick<Provider, 'messagesTo'>
  readonly setTime: (atMs: number) => void
}

export async function play(day: Day, stage: Stage): Promise<Played> {
  const { service, provider, setTime } = stage
  const played: Played = {
    people: countsFor(day.people, () => ({
      ...{ wanted: 0, passed: 0, refused: 0, challenged: 0, messages: 0 },
    })),
    attackers: countsFor(day.attackers, () => ({
      ...{ requests: 0, messages: 0, challenged: 0, solved: 0, compared: 0 },
    })),
    ...{ lost: 0, latencies: [], codeLength: 6 },
  }
  const { at, notBefore, run, pass } = createSchedule(setTime, day.sliceMs)
  const known = new Map<string, string>()

  /** The answer after all challenges, or the challenge for those who solve none. */
  async function answerOf<Result extends Sent | Checked>(
    counts: { challenged: number; solved?: number },
    first: Result,
    solves: boolean,
  ): Promise<Result> {
    if (first.is !== 'challenged') return first
    counts.challenged += 1
    if (!solves) return first
    if (counts.solved !== undefined) counts.solved += 1
    return solvedAnswer(first)
  }

  /** Presses. Returns the message of an accepted press, and how the service answered. */
  async function press(
    who: Press,
    counts: { challenged: number; messages: number },
    solves: boolean,
  ) {
    const before = provider.messagesTo(who.to).length
    const startMs = performance.now()
    const sent = await answerOf(counts, await service.send(who), solves)
    if (sent.is !== 'accepted') return { sent }
    await untilHandled(() => provider.messagesTo(who.to).length > before)
    const message = provider.messagesTo(who.to)[before]
    if (message) {
      played.codeLength = message.code.length
      counts.messages += 1
    } else played.lost += 1
    return { sent, message, startMs }
  }

  async function untilHandled(isDone: () => boolean | Promise<boolean>): Promise<void> {
    for (let waitedMs = busyMs; !(await until(isDone, busyMs)); waitedMs += busyMs) {
      if (waitedMs > lostMs) return
      pass(waitedMs)
    }
  }

  function arrive(visit: Visit, counts: PeopleCounts): void {
    const { channel, to, ip, habit, typingMs, isNewBrowser } = visit
    const who = (): Press => ({ channel, to, ip, known: isNewBrowser ? undefined : known.get(to) })
    if (habit !== 'leaves') counts.wanted += 1
    at(visit.atMs, (nowMs) => begin(nowMs, 1))

    async function begin(nowMs: number, presses: number): Promise<void> {
      const { sent, message, startMs } = await press(who(), counts, true)
      if (message) {
        played.latencies.push(message.atMs - startMs)
        read(nowMs, presses, message)
        return
      }
      if (sent.is !== 'refused') return
      // Whole seconds, as a page shows them, and a moment more.
      const waitMs = Math.ceil((sent.waitMs ?? patienceMs * 2) / 1_000) * 1_000 + 2_000
      if (presses === 1 && waitMs <= patienceMs) notBefore(nowMs + waitMs, (next) => begin(next, 2))
      else counts.refused += 1
    }

    function read(nowMs: number, presses: number, message: Arrival): void {
      if (habit === 'leaves') return
      if (habit === 'asks again' && presses === 1)
        notBefore(nowMs + 65_000, (next) => begin(next, 2))
      else if (habit === 'types late' && presses === 1) {
        notBefore(nowMs + lateMs, async (next) => {
          if (!(await finish(message.code))) at(next + 5_000, (later) => begin(later, 2))
        })
      } else if (habit === 'mistypes') {
        at(nowMs + typingMs, async (next) => {
          await check(wrongFor(message.code))
          at(next + 10_000, typeNewest)
        })
      } else at(nowMs + typingMs, typeNewest)
    }

    /** A person who got several messages types the code of the last. */
    async function typeNewest(): Promise<void> {
      await finish(provider.messagesTo(to).at(-1)?.code ?? '')
    }

    async function finish(code: string): Promise<boolean> {
      const checked = await check(code)
      if (checked.is !== 'passed') return false
      counts.passed += 1
      if (checked.known) known.set(to, checked.known)
      return true
    }

    async function check(code: string): Promise<Checked> {
      return answerOf(counts, await service.check({ ...who(), code }), true)
    }
  }

  function attack({ atMs, ...who }: Attack, { does, solves }: Attackers, counts: AttackerCounts) {
    const guess = (guessesLeft: number) => async (nowMs: number) => {
      counts.requests += 1
      const code = wrongFor(
        provider.messagesTo(who.to).at(-1)?.code ?? '0'.repeat(played.codeLength),
      )
      const checked = await answerOf(counts, await service.check({ ...who, code }), solves)
      if (checked.is === 'wrong') counts.compared += 1
      if (guessesLeft > 0) at(nowMs + 5_000, guess(guessesLeft - 1))
    }
    const send = async (nowMs: number) => {
      counts.requests += 1
      const { message } = await press(who, counts, solves)
      if (does === 'presses and guesses') at(nowMs + 5_000, guess(2))
      if (does !== 'types' || !message) return
      const typed = { ...who, code: message.code }
      at(nowMs + 20_000, async () => {
        await answerOf(counts, await service.check(typed), solves)
      })
    }
    at(atMs, does === 'guesses' ? guess(0) : send)
  }

  for (const [name, visits] of Object.entries(day.people))
    for (const visit of visits) arrive(visit, played.people[name] as PeopleCounts)
  for (const [name, attackers] of Object.entries(day.attackers))
    for (const one of attackers.requests)
      attack(one, attackers, played.attackers[name] as AttackerCounts)
  await run(() => untilHandled(async () => (await service.isQuiet?.()) ?? true))
  return played
}

const countsFor = <Counts>(groups: object, none: () => Counts): Record<string, Counts> =>
  Object.fromEntries(Object.keys(groups).map((name) => [name, none()]))

type Step = (nowMs: number) => void | Promise<void>

/** Steps run in the order of their times, and of their planning where these are equal. */
function createSchedule(setTime: (atMs: number) => void, sliceMs?: number) {
  /** In the order of their running. */
  const steps: { atMs: number; step: Step; isExact: boolean }[] = []
  let nowMs = 0
  let startedMs = 0
  const goTo = (atMs: number) => {
    nowMs = Math.max(nowMs, atMs)
    setTime(nowMs)
  }
  function plan(atMs: number, step: Step, isExact: boolean): void {
    let [low, high] = [0, steps.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((steps[middle]?.atMs ?? 0) <= atMs) low = middle + 1
      else high = middle
    }
    steps.splice(low, 0, { atMs, step, isExact })
  }
  return {
    /** Time passes within a step: so much since it began. */
    pass: (ms: number) => goTo(startedMs + ms),
    at: (atMs: number, step: Step) => plan(atMs, step, false),
    /** Never runs with earlier steps, so at its time. */
    notBefore: (atMs: number, step: Step) => plan(atMs, step, true),
    /** `rest` is awaited before time goes on. */
    async run(rest: () => Promise<void>): Promise<void> {
      for (let first = steps[0]; first; first = steps[0]) {
        goTo(first.atMs)
        startedMs = nowMs
        const endMs = first.atMs + (sliceMs ?? 0)
        const isLater = ({ atMs, isExact }: (typeof steps)[number]) =>
          sliceMs === undefined || atMs > (isExact ? first.atMs : endMs)
        const count = steps.findIndex((one) => one !== first && isLater(one))
        const together = steps.splice(0, count < 0 ? steps.length : count)
        await Promise.all(together.map(({ step }) => step(startedMs)))
        await rest()
      }
    },
  }
}
