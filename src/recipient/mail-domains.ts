/**
 * Reports if a mail domain accepts mail, so that a typing error fails at once and not by a bounce.
 *
 * DNS servers of others may be slow, broken or hostile, and a send must not suffer from that. So only a clear no
 * refuses a send, a caller waits only a short time, and the number of look-ups is limited. An answer that is late for
 * one send is cached for the next. This is no protection from attackers: they own domains that accept mail.
 */
import dns from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { createBoundedMap } from '../base/bounded-map.ts'
import type { Channel } from '../base/channel.ts'
import { orLate } from '../base/deadline.ts'
import { addressKindOf } from './channels.ts'

/** DNS's answer for a domain: accepts mail, accepts none, or unclear. */
export type DomainAnswer = 'takes_mail' | 'takes_none' | 'uncertain'

const keptMs: Record<DomainAnswer, number> = {
  takes_mail: 3_600_000,
  takes_none: 300_000,
  uncertain: 30_000,
}

/** May query DNS, so call it after the limits. Never throws. */
export type CanReach = (message: { app: string; channel: Channel; to: string }) => Promise<boolean>

/** Without `checkMx` no domain is looked up, and every recipient counts as reachable. */
export function openCanReach(
  { checkMx }: { checkMx: boolean },
  isTestRecipient: (to: string) => boolean,
): { canReach: CanReach; close(): void } {
  if (!checkMx) return { canReach: async () => true, close: () => {} }
  const { takesMail, close } = createMailDomains()
  return {
    async canReach({ app, channel, to }) {
      const domain = addressKindOf(channel).domainOf?.(to)
      return domain === undefined || isTestRecipient(to) || takesMail(app, domain)
    },
    close,
  }
}

export function createMailDomains(
  options: {
    /** The longest wait of a send. */
    waitMs?: number
    /** Limit of look-ups at a time for all apps together. One app may use a quarter of it. */
    maxLookUps?: number
    maxRemembered?: number
    now?: () => number
    resolver?: DnsResolver
  } = {},
) {
  const { waitMs = 300, maxLookUps = 100, maxRemembered = 20_000 } = options
  const { now = () => performance.now(), resolver = createDnsResolver(2_000) } = options
  const known = createBoundedMap<{ answer: DomainAnswer; until: number }>(maxRemembered)
  /** Look-ups under way, by domain. The promise includes the first caller's time limit. */
  const lookUps = new Map<string, { app: string; answer: Promise<DomainAnswer> }>()

  async function lookUp(domain: string): Promise<DomainAnswer> {
    const answer = await findMailServers(resolver, domain)
    known.set(domain, { answer, until: now() + keptMs[answer] })
    lookUps.delete(domain)
    return answer
  }

  function hasRoom(app: string): boolean {
    const own = [...lookUps.values()].filter((one) => one.app === app)
    return lookUps.size < maxLookUps && own.length < maxLookUps / 4
  }

  return {
    /** False if the domain clearly accepts no mail. Never throws. */
    async takesMail(app: string, domain: string): Promise<boolean> {
      const found = known.get(domain)
      if (found && found.until > now()) return found.answer !== 'takes_none'
      let answer = lookUps.get(domain)?.answer
      if (!answer) {
        if (!hasRoom(app)) return true
        answer = orLate(lookUp(domain), waitMs, () => 'uncertain')
        lookUps.set(domain, { app, answer })
      }
      return (await answer) !== 'takes_none'
    },

    close(): void {
      resolver.cancel()
    },
  }
}

export type DnsResolver = Pick<
  Resolver,
  'resolveMx' | 'resolve4' | 'resolve6' | 'resolveTxt' | 'cancel'
>

/** Uses the DNS servers of this process, even if a host app sets others. A query to a server ends within `maxMs`. */
export function createDnsResolver(maxMs: number): Resolver {
  // Each try waits longer than the last.
  const resolver = new Resolver({ timeout: Math.floor(maxMs / 3), tries: 2 })
  resolver.setServers(dns.getServers())
  return resolver
}

/**
 * Without MX, a domain gets mail at its address (RFC 5321, 5.1). If its only MX is the root, it gets none (RFC 7505).
 */
export async function findMailServers(
  resolver: Pick<DnsResolver, 'resolveMx' | 'resolve4' | 'resolve6'>,
  domain: string,
): Promise<DomainAnswer> {
  const records = await settle(() => resolver.resolveMx(domain))
  if (Array.isArray(records)) {
    return records.every(({ exchange }) => exchange === '' || exchange === '.')
      ? 'takes_none'
      : 'takes_mail'
  }
  if (records !== 'none') return records === 'no_name' ? 'takes_none' : 'uncertain'
  const addresses = await Promise.all([
    settle(() => resolver.resolve4(domain)),
    settle(() => resolver.resolve6(domain)),
  ])
  if (addresses.some((found) => Array.isArray(found))) return 'takes_mail'
  return addresses.includes('uncertain') ? 'uncertain' : 'takes_none'
}

/** The records, or the reason why there are none: no such type, no such name, or no clear answer. */
export async function settle<Found>(
  ask: () => Promise<Found[]>,
): Promise<Found[] | 'none' | 'no_name' | 'uncertain'> {
  try {
    const records = await ask()
    return records.length > 0 ? records : 'none'
  } catch (error) {
    const { code } = error as { code?: string }
    return code === 'ENODATA' ? 'none' : code === 'ENOTFOUND' ? 'no_name' : 'uncertain'
  }
}
