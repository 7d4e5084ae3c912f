/**
 * Days of people and attackers, drawn from a seed before they are played: no choice of a person depends on a service's
 * speed. Honest people come from twenty countries, by the hours of their day. `drawDay` is the day of the benchmark;
 * attack-days.ts has days with one attack each.
 */
import parsePhoneNumber from 'libphonenumber-js/max'

export const hourMs = 3_600_000

/** A person's way with a code: types it; mistypes it first; asks for another; types it too late; leaves. */
type Habit = 'types' | 'mistypes' | 'asks again' | 'types late' | 'leaves'

interface Recipient {
  readonly channel: 'sms' | 'email'
  readonly to: string
}

export interface Visit extends Recipient {
  /** Since the day began. */
  readonly atMs: number
  readonly ip: string
  readonly habit: Habit
  /** Time to read and type a code. */
  readonly typingMs: number
  /** In a browser in which this person never signed in. */
  readonly isNewBrowser?: boolean
}

/** One request of an attacker. */
export interface Attack extends Recipient {
  readonly atMs: number
  readonly ip: string
}

export interface Attackers {
  readonly requests: readonly Attack[]
  /** With `types`, each right code is typed. With `presses and guesses`, each press is followed by three guesses. */
  readonly does: 'presses' | 'types' | 'presses and guesses' | 'guesses'
  readonly solves: boolean
}

export interface Day {
  /** By the name of a group. */
  readonly people: Readonly<Record<string, readonly Visit[]>>
  /** By the name of what they attack. */
  readonly attackers: Readonly<Record<string, Attackers>>
  /** Requests within this time run at once, at the time of the first. Default: one request at a time. */
  readonly sliceMs?: number
}

/** Whole numbers below a bound. The same seed gives the same numbers (xorshift). */
export function createDraw(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

export type Draw = ReturnType<typeof createDraw>

/** An address as a provider gives it to a customer. */
export const homeIp = (draw: Draw) =>
  [24 + draw(150), draw(256), draw(256), 1 + draw(254)].join('.')

/** Shares per hundred, and the hours of the country's clock ahead of UTC. */
const homes = [
  { country: 'CN', prefix: '+8613', digits: 9, hours: 8, share: 20 },
  { country: 'DE', prefix: '+49151', digits: 8, hours: 1, share: 14 },
  { country: 'IN', prefix: '+919', digits: 9, hours: 5, share: 10 },
  { country: 'US', prefix: '+1212', digits: 7, hours: -5, share: 8 },
  { country: 'BR', prefix: '+55119', digits: 8, hours: -3, share: 6 },
  { country: 'GB', prefix: '+447400', digits: 6, hours: 0, share: 5 },
  { country: 'FR', prefix: '+336', digits: 8, hours: 1, share: 5 },
  { country: 'JP', prefix: '+8190', digits: 8, hours: 9, share: 4 },
  { country: 'ID', prefix: '+62812', digits: 8, hours: 7, share: 4 },
  { country: 'MX', prefix: '+5255', digits: 8, hours: -6, share: 3 },
  { country: 'TR', prefix: '+90532', digits: 7, hours: 3, share: 3 },
  { country: 'PH', prefix: '+63917', digits: 7, hours: 8, share: 3 },
  { country: 'VN', prefix: '+8490', digits: 7, hours: 7, share: 3 },
  { country: 'PL', prefix: '+48501', digits: 6, hours: 1, share: 3 },
  { country: 'NG', prefix: '+234803', digits: 7, hours: 1, share: 2 },
  { country: 'PK', prefix: '+92300', digits: 7, hours: 5, share: 2 },
  { country: 'BD', prefix: '+88017', digits: 8, hours: 6, share: 2 },
  { country: 'EG', prefix: '+2010', digits: 8, hours: 2, share: 1 },
  { country: 'ZA', prefix: '+2782', digits: 7, hours: 2, share: 1 },
  { country: 'UZ', prefix: '+99890', digits: 7, hours: 5, share: 1 },
] as const
const byShare = homes.flatMap((home) => Array<(typeof homes)[number]>(home.share).fill(home))
/** Attackers rent numbers in these, in blocks of ten thousand. */
const rentedFrom = homes.filter(({ country }) => ['ID', 'NG', 'PK', 'BD', 'UZ'].includes(country))
/** The numbers of block `first` and the three after it, without their last four digits. */
const blocksOf = (first: number, from: readonly Home[] = rentedFrom) =>
  from.flatMap(({ prefix, digits }) =>
    [0, 1, 2, 3].map((index) => prefix + String(first + index).padStart(digits - 4, '4')),
  )
type Home = (typeof homes)[number]
const [pumpedBlock, typedBlock] = [3, 7]

/** Mail providers of people, per hundred. The others have a mailbox at one of forty companies. */
const mailShares = { 'gmail.com': 45, 'qq.com': 15, 'outlook.com': 15, 'icloud.com': 10 }
const mailDomains = Object.entries(mailShares).flatMap(([domain, share]) =>
  Array<string>(share).fill(domain),
)

export const victim = '+8613912345678'
const guessed = '+8613887654321'

/** `countries`: those that get SMS, if not all. */
export function drawDay(people: number, seed: number, countries?: readonly string[]): Day {
  const draw = createDraw(seed)
  const visits = drawPeople(draw, people, countries)
  const owners = [victim, guessed].flatMap((to) => ownerOf(draw, to))
  const guesses = { does: 'presses and guesses', solves: true } as const
  return {
    people: { people: visits, owners },
    attackers: {
      'rented numbers': pumping(draw, people * 2, pumpedBlock, false),
      'rented numbers that type': {
        ...pumping(draw, people, typedBlock, true),
        does: 'types',
      },
      'a bombed number': { ...bombing(draw, people * 2), does: 'presses', solves: false },
      'a guessed number': { ...bombing(draw, people, () => guessed), ...guesses },
      'many guessed numbers': { ...bombing(draw, Math.ceil(people / 2), farApart), ...guesses },
    },
  }
}

/** Like the numbers of a site's customers. */
export const farApart = (index: number) => `+8613${String(index * 190_009).padStart(9, '0')}`

/** So many of ten use mail, and all people of countries without SMS. One of ten shares an office's address with others. */
export function drawPeople(
  draw: Draw,
  people: number,
  countries?: readonly string[],
  mailOfTen = 2,
): Visit[] {
  const offices = Array.from({ length: Math.ceil(people / 200) }, () => homeIp(draw))
  return Array.from({ length: people }, (_, person) => {
    const home = byShare[draw(100)] as Home
    // Between 7 and 24 o'clock of the country, and most often in the middle.
    const hourThere = 7 + (draw(1_000) + draw(1_000)) * (17 / 2_000)
    const atMs = ((((hourThere - home.hours) % 24) + 24) % 24) * hourMs + draw(60_000)
    const number = drawNumber(draw, home)
    const usesMail = draw(10) < mailOfTen || !(countries?.includes(home.country) ?? true)
    const office = offices[draw(offices.length * 10)]
    const domain = mailDomains[draw(100)] ?? `company${person % 40}.com`
    return {
      atMs: Math.floor(atMs),
      ...(usesMail
        ? { channel: 'email', to: `ada.byron${person}@${domain}` }
        : { channel: 'sms', to: number }),
      ip: office ?? homeIp(draw),
      habit: drawHabit(draw),
      typingMs: 8_000 + draw(32_000),
    }
  })
}

function drawHabit(draw: Draw): Habit {
  const mood = draw(100)
  if (mood < 5) return 'leaves'
  if (mood < 12) return 'asks again'
  if (mood < 20) return 'mistypes'
  return mood < 24 ? 'types late' : 'types'
}

/** In the countries of rented numbers, one of twenty people has a number of a rented block. */
function drawNumber(draw: Draw, home: Home): string {
  const isNear = draw(20) === 0 && rentedFrom.includes(home)
  const near = isNear ? blocksOf(pumpedBlock, [home])[draw(4)] : undefined
  if (near) return near + (9_000 + draw(1_000))
  for (;;) {
    const number = home.prefix + String(draw(10 ** home.digits)).padStart(home.digits, '0')
    if (parsePhoneNumber(number)?.isValid()) return number
  }
}

/** Signs in ten times, every two hours, from the same address. */
export function ownerOf(draw: Draw, to: string): Visit[] {
  const ip = homeIp(draw)
  return Array.from({ length: 10 }, (_, index) => ({
    atMs: (2 + index * 2) * hourMs + draw(60_000),
    ...{ channel: 'sms', to, ip, habit: 'types', typingMs: 15_000 },
  }))
}

/** Within twelve hours, one request for each number of twenty blocks, from a tenth as many addresses. */
export function pumping(draw: Draw, count: number, firstBlock: number, solves: boolean): Attackers {
  const blocks = blocksOf(firstBlock)
  const numbers = Array.from({ length: count }, (_, index) => {
    const inBlock = Math.floor(index / blocks.length) * 7
    return `${blocks[index % blocks.length]}${String(inBlock).padStart(4, '0')}`
  })
  return { ...requestsFor(draw, numbers, [6, 18]), does: 'presses', solves }
}

/** From the third hour on, after the owners' first sign-in. */
export const bombing = (draw: Draw, count: number, to = (_index: number) => victim) =>
  requestsFor(
    draw,
    Array.from({ length: count }, (_, index) => to(index)),
    [3, 24],
  )

/** A request for each recipient, at any time between two hours, from a tenth as many addresses. */
export function requestsFor(
  draw: Draw,
  recipients: readonly string[],
  [fromHour, toHour]: readonly [number, number],
): { requests: Attack[] } {
  const ips = Array.from({ length: Math.ceil(recipients.length / 10) }, () => homeIp(draw))
  const requests = recipients.map(
    (to): Attack => ({
      atMs: fromHour * hourMs + draw((toHour - fromHour) * hourMs),
      channel: to.includes('@') ? 'email' : 'sms',
      to,
      ip: ips[draw(ips.length)] as string,
    }),
  )
  return { requests }
}
