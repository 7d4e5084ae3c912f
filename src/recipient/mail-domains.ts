/**
 * Whether a mail's domain takes mail at all, so that a typing error is told at once and not by a bounce.
 *
 * DNS belongs to others, who may be slow, broken or hostile, and a send must not suffer from that: only a clear
 * no refuses, a caller waits a short while at most, and when too much is being looked up nothing more is, neither for all nor for one app. The
 * answer that came too late for one send is there for the next. It is no protection: who wants to send to
 * a domain has one that takes mail.
 */
import dns from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { createBoundedMap } from '../base/bounded-map.ts'
import { orLate } from '../base/deadline.ts'

/** What DNS says of a domain: it takes mail, it takes none, or DNS says nothing clear. */
export type DomainAnswer = 'takes_mail' | 'takes_none' | 'uncertain'

const keptMs: Record<DomainAnswer, number> = {
  takes_mail: 3_600_000,
  takes_none: 300_000,
  uncertain: 30_000,
}

export function createMailDomains(
  options: {
    /** How long a send waits at most. */
    waitMs?: number
    /** Of all apps; one has a quarter of it. */
    maxLookUps?: number
    maxRemembered?: number
    now?: () => number
    resolver?: DnsResolver
  } = {},
) {
  const { waitMs = 300, maxLookUps = 100, maxRemembered = 20_000 } = options
  const { now = () => performance.now(), resolver = createDnsResolver(2_000) } = options
  const known = createBoundedMap<{ answer: DomainAnswer; until: number }>(maxRemembered)
  /** By domain, those under way; each as a caller hears it, who comes second waits no longer. */
  const lookUps = new Map<string, { app: string; heard: Promise<DomainAnswer> }>()

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
    /** False when the domain clearly takes no mail. Never throws. */
    async takesMail(app: string, domain: string): Promise<boolean> {
      const found = known.get(domain)
      if (found && found.until > now()) return found.answer !== 'takes_none'
      let heard = lookUps.get(domain)?.heard
      if (!heard) {
        if (!hasRoom(app)) return true
        heard = orLate(lookUp(domain), waitMs, () => 'uncertain')
        lookUps.set(domain, { app, heard })
      }
      return (await heard) !== 'takes_none'
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

/** Asks the servers of this process, also where a host has set others. A question to one ends within `maxMs`. */
export function createDnsResolver(maxMs: number): Resolver {
  // Each try waits longer than the one before it.
  const resolver = new Resolver({ timeout: Math.floor(maxMs / 3), tries: 2 })
  resolver.setServers(dns.getServers())
  return resolver
}

/**
 * By RFC 5321 (5.1) a domain without MX takes mail at its own address, and by RFC 7505 one whose only MX is
 * the root takes none.
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

/** The records, or why there are none: of this type, of this name at all, or nobody can say. */
async function settle<Found>(
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
