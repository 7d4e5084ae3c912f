/**
 * Days with sign-ups by mail: half of the honest people, and attackers who invent addresses. Each kind of attack makes three
 * requests per honest person within twelve hours, from 1,000 addresses.
 */
import { type Draw, homeIp, honestDay, hourMs, type Visit } from './day.ts'

/** Domains of honest people, per hundred. The others have a mailbox at one of 200 companies. */
const domains = [
  { domain: 'gmail.com', share: 45 },
  { domain: 'qq.com', share: 15 },
  { domain: 'outlook.com', share: 15 },
  { domain: 'icloud.com', share: 10 },
] as const
const atDomains = domains.flatMap(({ domain, share }) => Array<string>(share).fill(domain))

/** Half of the honest people sign up by mail, and so do those in countries that get no SMS. */
export function honestMailDay(
  people: number,
  draw: Draw,
  countries: readonly string[] | undefined,
): Visit[] {
  return honestDay(people, draw).map((visit, person) => {
    const hasSms = countries?.includes(visit.country) ?? true
    if (person % 2 === 0 && hasSms) return visit
    const domain = atDomains[draw(100)] ?? `company${draw(200)}.com`
    return { ...visit, channel: 'email', to: `ada.byron${person}@${domain}`, country: '' }
  })
}

/** The address with this number, undefined without an attack. `day` has the honest people of that day. */
export type Invent = (index: number, day: readonly Visit[]) => string | undefined

export const mailAttacks = {
  none: () => undefined,
  'at one domain': (index: number) => `stranger${index * 7}@gmail.com`,
  'spellings of 20 mailboxes': (index: number, day: readonly Visit[]) => {
    const owners = day.filter(({ to }) => to.endsWith('@gmail.com'))
    const [local = ''] = (owners[index % 20] as Visit).to.replaceAll('.', '').split('@')
    const at = 1 + (Math.floor(index / 20) % (local.length - 1))
    return `${local.slice(0, at)}.${local.slice(at)}+${Math.floor(index / 20)}@gmail.com`
  },
  'each at its own domain': (index: number) => `stranger@invented${index * 7}.com`,
}

export function mailAttack(draw: Draw, day: readonly Visit[], invent: Invent): Visit[] {
  const ips = Array.from({ length: 1_000 }, () => homeIp(draw))
  return Array.from({ length: 3 * day.length }, (_, index) => invent(index, day)).flatMap(
    (to): Visit[] => {
      if (to === undefined) return []
      const atMs = 6 * hourMs + draw(12 * hourMs)
      const ip = ips[draw(ips.length)] as string
      return [{ atMs, ip, channel: 'email', to, country: '', isHonest: false, does: 'leave' }]
    },
  )
}
