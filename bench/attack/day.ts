/**
 * A day in the life of a sign-up page, as a list of visits: honest people and attackers. Drawn from a seed,
 * so that every policy meets the same day.
 */
export const hourMs = 3_600_000

export interface Visit {
  /** Since the day began. */
  atMs: number
  ip: string
  channel: 'sms' | 'email'
  to: string
  /** Empty for mail. */
  country: string
  isHonest: boolean
  /** The visitor's next step after the code has arrived. */
  does: 'check' | 'ask again' | 'leave'
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

/** Countries of honest people, per thousand. The last five are the countries that the attacker uses. */
const homes = [
  { country: 'CN', prefix: '+8613', digits: 9, share: 550 },
  { country: 'DE', prefix: '+49151', digits: 8, share: 250 },
  { country: 'ID', prefix: '+62812', digits: 8, share: 40 },
  { country: 'BD', prefix: '+88017', digits: 8, share: 40 },
  { country: 'UZ', prefix: '+99890', digits: 7, share: 40 },
  { country: 'NG', prefix: '+234803', digits: 7, share: 40 },
  { country: 'PK', prefix: '+92300', digits: 7, share: 40 },
] as const

const pumped = homes.slice(2)
const prefixesPerCountry = 4

/** Twenty prefixes of numbers that an attacker has rented: the numbers without their last four digits. */
const rented = pumped.flatMap(({ country, prefix, digits }) =>
  Array.from({ length: prefixesPerCountry }, (_, index) => ({
    country,
    prefix: `${prefix}${String(index + 3).padStart(digits - 4, '4')}`,
  })),
)

const digitsOf = (value: number, length: number) => String(value).padStart(length, '0')

/** An address as a provider gives it to a customer. */
export const homeIp = (draw: Draw) =>
  [24 + draw(150), draw(256), draw(256), 1 + draw(254)].join('.')

/** Ten of a hundred people sit in offices of twenty. Five never type the code, and seven ask twice. */
export function honestDay(people: number, draw: Draw): Visit[] {
  const offices = Array.from({ length: Math.ceil(people / 200) }, () => homeIp(draw))
  const countries = homes.flatMap((home) => Array<(typeof homes)[number]>(home.share).fill(home))
  return Array.from({ length: people }, (_, person) => {
    const home = countries[draw(countries.length)] as (typeof homes)[number]
    const { country, prefix, digits } = home
    const isPumped = pumped.some((one) => one.country === country)
    // One in twenty of them has a number with a prefix that the attacker rents from.
    const shared = isPumped && draw(20) === 0 ? rented.filter((one) => one.country === country) : []
    const near = shared[draw(Math.max(1, shared.length))]
    const to = near
      ? near.prefix + digitsOf(9_000 + (person % 1_000), 4)
      : prefix + digitsOf(draw(10 ** digits), digits)
    const mood = draw(100)
    return {
      // More by day than by night.
      atMs: Math.floor((draw(24 * hourMs) + draw(24 * hourMs)) / 2),
      ip: draw(10) === 0 ? (offices[draw(offices.length)] as string) : homeIp(draw),
      channel: 'sms',
      to,
      country,
      isHonest: true,
      does: mood < 5 ? 'leave' : mood < 12 ? 'ask again' : 'check',
    }
  })
}

export const pumpedNumbers = 10_000

/** Pumping: within twelve hours, a code is requested once for each of 10,000 rented numbers, from 1,000 addresses. */
export function pumpingDay(draw: Draw): Visit[] {
  const ips = Array.from({ length: 1_000 }, () => homeIp(draw))
  return Array.from({ length: pumpedNumbers }, (_, index) => {
    const { country, prefix } = rented[index % rented.length] as (typeof rented)[number]
    const suffix = Math.floor((index % pumpedNumbers) / rented.length)
    return {
      atMs: 6 * hourMs + draw(12 * hourMs),
      ip: ips[draw(ips.length)] as string,
      channel: 'sms',
      to: prefix + digitsOf(suffix * 7, 4),
      country,
      isHonest: false,
      does: 'leave',
    }
  })
}

export const victim = { channel: 'sms', to: '+8613912345678', country: 'CN' } as const

/** Bombing: 5,000 requests for one number in a day, from 500 addresses. Its owner signs in ten times. */
export function bombingDay(draw: Draw): Visit[] {
  const ips = Array.from({ length: 500 }, () => homeIp(draw))
  const bombs = Array.from({ length: 5_000 }, (): Visit => {
    const ip = ips[draw(ips.length)] as string
    return { ...victim, atMs: draw(24 * hourMs), ip, isHonest: false, does: 'leave' }
  })
  const owner = Array.from({ length: 10 }, (_, index): Visit => {
    const atMs = index * 2 * hourMs + 2 * hourMs
    return { ...victim, atMs, ip: '81.2.69.142', isHonest: true, does: 'check' }
  })
  return [...bombs, ...owner]
}
