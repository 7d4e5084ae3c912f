/** Days with one attack each, larger than the day of the benchmark. `npm run bench -- attack` plays them against policies. */
import {
  type Attack,
  bombing,
  createDraw,
  type Day,
  drawPeople,
  farApart,
  hourMs,
  ownerOf,
  pumping,
  requestsFor,
  type Visit,
  victim,
} from './day.ts'

const seed = 20_261_122
const sliceMs = 5 * 60_000

/** Rented numbers of twenty blocks in five countries: 10,000 beside 3,000 people. */
export function pumpingDay(people: number, countries?: readonly string[], solves = false): Day {
  const draw = createDraw(seed)
  return {
    people: { people: drawPeople(draw, people, countries) },
    attackers: { attack: pumping(draw, Math.round((people * 10) / 3), 3, solves) },
    sliceMs,
  }
}

/** Requests for one number, 5,000 beside 3,000 people. Its owner signs in ten times, in a new browser each time. */
export function bombingDay(people: number, countries?: readonly string[], solves = false): Day {
  const draw = createDraw(seed)
  const owner = ownerOf(draw, victim).map((visit): Visit => ({ ...visit, isNewBrowser: true }))
  return {
    people: { people: drawPeople(draw, people, countries), owner },
    attackers: {
      attack: { ...bombing(draw, Math.round((people * 5) / 3)), does: 'presses', solves },
    },
    sliceMs,
  }
}

/** The mail address with this number. `day` has the honest people of that day. */
type Invent = (index: number, day: readonly Visit[]) => string

export const mailAttacks: Readonly<Record<string, Invent | undefined>> = {
  none: undefined,
  invented: (index) => `stranger${index * 7}@gmail.com`,
  /** Dots and tags of twenty mailboxes whose owners sign up that day. */
  spellings(index, day) {
    const owners = day.filter(({ to }) => to.endsWith('@gmail.com'))
    const [local = ''] = (owners[index % 20]?.to ?? '').replaceAll('.', '').split('@')
    const nth = Math.floor(index / 20)
    const at = 1 + (nth % (local.length - 1))
    return `${local.slice(0, at)}.${local.slice(at)}+${nth}@gmail.com`
  },
  'each at its own domain': (index) => `stranger@invented${index * 7}.com`,
}

/** Half of the people sign up by mail. Attackers make three requests per person within twelve hours. */
export function mailDay(
  people: number,
  invent: Invent | undefined,
  countries?: readonly string[],
  solves = false,
): Day {
  const draw = createDraw(seed)
  const all = drawPeople(draw, people, countries, 5)
  const invented = Array.from({ length: invent ? 3 * people : 0 }, (_, index) =>
    invent?.(index, all),
  )
  const { requests } = requestsFor(draw, invented as string[], [6, 18])
  return {
    people: {
      mail: all.filter(({ channel }) => channel === 'email'),
      sms: all.filter(({ channel }) => channel === 'sms'),
    },
    attackers: { attack: { requests, does: 'presses', solves } },
    sliceMs,
  }
}

export const ownerDays = 3

/**
 * Days on which an owner signs in nine times. Strangers make 40 guesses before each sign-in. Between its send and its
 * check they make 20 guesses, then `bombs` sends, one of which may replace the code, and then 20 more guesses. The owner
 * types the newest code. Known: in a browser in which the owner has signed in on the day before.
 */
export function guessedOwner(isKnown: boolean, bombs: number, solves: boolean): Day {
  const draw = createDraw(3)
  const ips = Array.from({ length: 500 }, (_, index) => `45.${index >> 8}.${index & 255}.7`)
  const at = (atMs: number, count: number) =>
    Array.from(
      { length: count },
      (): Attack => ({
        ...{ atMs, channel: 'sms', to: victim, ip: ips[draw(ips.length)] as string },
      }),
    )
  const times = Array.from({ length: ownerDays * 9 }, (_, index) => {
    return (1 + Math.floor(index / 9)) * 24 * hourMs + (index % 9) * 2 * hourMs
  })
  const signIn = (atMs: number): Visit => ({
    ...{ atMs, channel: 'sms', to: victim, ip: '81.2.69.142', habit: 'types', typingMs: 15_000 },
    isNewBrowser: !isKnown,
  })
  const guesses = times.flatMap((atMs) => [
    ...at(atMs - 1_000, 40),
    ...at(atMs + 5_000, 20),
    ...at(atMs + 12_000, bombs > 0 ? 20 : 0),
  ])
  const bombed = times.flatMap((atMs) => at(atMs + 10_000, bombs))
  return {
    people: { owner: times.map(signIn), before: isKnown ? [signIn(0)] : [] },
    attackers: {
      guesses: { requests: guesses, does: 'guesses', solves },
      bombs: { requests: bombed, does: 'presses', solves },
    },
    // Requests of the same moment come together.
    sliceMs: 0,
  }
}

/** A code is requested for each of so many numbers, and then guessed three times. */
export function guessedNumbers(count: number, solves: boolean): Day {
  const numbers = Array.from({ length: count }, (_, index) => farApart(index))
  const { requests } = requestsFor(createDraw(5), numbers, [0, 24])
  const attack = { requests, does: 'presses and guesses', solves } as const
  return { people: {}, attackers: { attack }, sliceMs }
}
