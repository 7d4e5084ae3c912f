/**
 * A day of people and attackers, drawn from a seed before it is played: no choice of a person depends on a service's
 * speed. Honest people come from twenty countries, by the hours of their day.
 */
import parsePhoneNumber from 'libphonenumber-js/max'
import { createDraw, type Draw, homeIp, hourMs, victim } from '../attack/day.ts'

/** A person's way with a code: types it; mistypes it first; asks for another; types it too late; leaves. */
export type Habit = 'types' | 'mistypes' | 'asks again' | 'types late' | 'leaves'

export interface Visit {
  /** Since the day began. */
  readonly atMs: number
  readonly channel: 'sms' | 'email'
  readonly to: string
  readonly country: string
  readonly ip: string
  readonly habit: Habit
  /** Time to read and type a code. */
  readonly typingMs: number
}

/** One request of an attacker, or a series at one number. */
export interface Attack {
  readonly atMs: number
  readonly to: string
  readonly ip: string
}

export interface Day {
  readonly people: readonly Visit[]
  /** Owners of the attacked numbers sign in during the attacks. */
  readonly owners: readonly Visit[]
  /** Rented numbers: nothing is typed. */
  readonly pumping: readonly Attack[]
  /** Rented numbers: each right code is typed, and each challenge solved. */
  readonly typing: readonly Attack[]
  /** Sends to one number. */
  readonly bombing: readonly Attack[]
  /** Sends to one number, each with three guesses at its code. Each challenge is solved. */
  readonly guessing: readonly Attack[]
  /** The same at one number after another. */
  readonly guessingMany: readonly Attack[]
}

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

const guessed = '+8613887654321'

export function drawDay(people: number, seed: number): Day {
  const draw = createDraw(seed)
  const visits = Array.from({ length: people }, (_, person) => drawVisit(draw, person))
  return {
    people: visits,
    owners: [...ownerOf(draw, victim.to, 10), ...ownerOf(draw, guessed, 10)],
    pumping: rentedNumbers(draw, people * 2, 3),
    typing: rentedNumbers(draw, people, 7),
    bombing: requests(draw, people * 2, () => victim.to),
    guessing: requests(draw, people, () => guessed),
    guessingMany: requests(draw, Math.ceil(people / 2), (index) => {
      // Far apart, like the numbers of a site's customers.
      return `+8615${String(index * 190_009).padStart(9, '0')}`
    }),
  }
}

/** Two of ten use mail, and so do people of other countries where the service sends SMS to `countries` only. */
export function peopleOf(day: Day, countries: readonly string[] | undefined): readonly Visit[] {
  return day.people.map((visit, person) => {
    if (visit.channel === 'email' || (countries?.includes(visit.country) ?? true)) return visit
    return { ...visit, channel: 'email', to: mailOf(person) }
  })
}

const mailOf = (person: number) => `ada.byron${person}@company${person % 40}.com`

function drawVisit(draw: Draw, person: number): Visit {
  const home = byShare[draw(100)] as (typeof homes)[number]
  // Between 7 and 24 o'clock of the country, and most often in the middle.
  const hourThere = 7 + (draw(1_000) + draw(1_000)) * (17 / 2_000)
  const atMs = ((((hourThere - home.hours) % 24) + 24) % 24) * hourMs + draw(60_000)
  const to = drawNumber(draw, home)
  const usesMail = draw(10) < 2
  const mood = draw(100)
  return {
    atMs: Math.floor(atMs),
    ...(usesMail ? { channel: 'email', to: mailOf(person) } : { channel: 'sms', to }),
    country: home.country,
    ip: homeIp(draw),
    habit:
      mood < 5
        ? 'leaves'
        : mood < 12
          ? 'asks again'
          : mood < 20
            ? 'mistypes'
            : mood < 24
              ? 'types late'
              : 'types',
    typingMs: 8_000 + draw(32_000),
  }
}

function drawNumber(draw: Draw, { prefix, digits }: (typeof homes)[number]): string {
  for (;;) {
    const number = prefix + String(draw(10 ** digits)).padStart(digits, '0')
    if (parsePhoneNumber(number)?.isValid()) return number
  }
}

/** Signs in every two hours, from the same browser. */
function ownerOf(draw: Draw, to: string, times: number): Visit[] {
  const ip = homeIp(draw)
  return Array.from({ length: times }, (_, index) => ({
    atMs: (2 + index * 2) * hourMs + draw(60_000),
    ...{ channel: 'sms', to, country: 'CN', ip, habit: 'types', typingMs: 15_000 },
  }))
}

/** Within twelve hours, one request for each number of twenty blocks, from a tenth as many addresses. */
function rentedNumbers(draw: Draw, count: number, firstBlock: number): Attack[] {
  const blocks = rentedFrom.flatMap(({ prefix, digits }) =>
    [0, 1, 2, 3].map((index) => prefix + String(firstBlock + index).padStart(digits - 4, '4')),
  )
  const ips = Array.from({ length: Math.ceil(count / 10) }, () => homeIp(draw))
  return Array.from({ length: count }, (_, index) => ({
    atMs: 6 * hourMs + draw(12 * hourMs),
    to: `${blocks[index % blocks.length]}${String(Math.floor(index / blocks.length) * 7).padStart(4, '0')}`,
    ip: ips[draw(ips.length)] as string,
  }))
}

/** From the third hour on, after the owners' first sign-in, from a tenth as many addresses. */
function requests(draw: Draw, count: number, to: (index: number) => string): Attack[] {
  const ips = Array.from({ length: Math.ceil(count / 10) }, () => homeIp(draw))
  return Array.from({ length: count }, (_, index) => ({
    atMs: 3 * hourMs + draw(21 * hourMs),
    to: to(index),
    ip: ips[draw(ips.length)] as string,
  }))
}
