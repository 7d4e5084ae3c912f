import { findOnPath, findOrInstall } from '../../src/dev/find-or-install.ts'

/**
 * Worlds in which Postern must work: servers, languages and versions that its developers do not have. Each is data: a
 * name, and what differs from a private PostgreSQL and Redis in UTC. The suite runs the story in all of them, several at
 * once. `npm run test:worlds` runs it in each alone, and the rooms in those whose servers the rooms can share.
 */
export interface World {
  readonly name: string
  readonly postgres?: PostgresWorld
  readonly redis?:
    | 'tls'
    | 'sentinel'
    | 'sentinel-with-password'
    | 'cluster'
    | 'tls-cluster'
    | 'valkey'
  /** The connections to Redis are ended at random. */
  readonly endsConnections?: true
  /** Variables of every process of Postern. */
  readonly env?: Readonly<Record<string, string>>
  /** The major version of Node, in place of the one that npm brings. */
  readonly node?: number
  /** Postern is mounted in an app of this major version of Express. */
  readonly express?: number
  /** Postern does not work here. `migrate` and `/readyz` give this reason. */
  readonly refused?: string
}

export interface PostgresWorld {
  /** Settings of the server. */
  readonly settings?: Readonly<Record<string, string>>
  /** Debian's version in place of the one that npm brings. */
  readonly major?: 15
  /** Postern's role, which is then no superuser; with settings that its sessions begin with. */
  readonly role?: Readonly<Record<string, string>>
  /** A schema that only the role may use. */
  readonly roleSchema?: string
  /** Parameters of `DATABASE_URL`. */
  readonly query?: string
  /** A PgBouncer before it, with a server connection for each session. */
  readonly pooler?: true
}

export const worlds: readonly World[] = [
  {
    name: 'shanghai',
    postgres: { settings: { timezone: 'Asia/Shanghai', datestyle: 'German, DMY' } },
  },
  {
    name: 'own-schema',
    postgres: {
      role: { search_path: 'app, public', datestyle: 'SQL, DMY', timezone: 'America/New_York' },
      roleSchema: 'app',
    },
  },
  { name: 'schema-of-the-address', postgres: { query: 'schema=shop' } },
  {
    name: 'serializable',
    postgres: {
      settings: { default_transaction_isolation: 'serializable' },
      role: { lock_timeout: '100ms', statement_timeout: '30s', intervalstyle: 'iso_8601' },
    },
  },
  {
    name: 'pooler',
    postgres: { pooler: true },
    refused:
      'postgresql is behind a pooler that changes sessions; point DATABASE_URL at PostgreSQL itself',
  },
  { name: 'postgresql-15', postgres: { major: 15, settings: { timezone: 'Asia/Kathmandu' } } },
  { name: 'redis-tls', redis: 'tls' },
  { name: 'sentinel', redis: 'sentinel' },
  { name: 'sentinel-with-password', redis: 'sentinel-with-password' },
  { name: 'cluster', redis: 'cluster' },
  { name: 'tls-cluster', redis: 'tls-cluster', endsConnections: true },
  { name: 'valkey', redis: 'valkey' },
  { name: 'process-in-shanghai', env: { TZ: 'Asia/Shanghai', LANG: 'zh_CN.UTF-8' } },
  { name: 'process-in-st-johns', env: { TZ: 'America/St_Johns', LANG: 'tr_TR.UTF-8' } },
  { name: 'small-heap', env: { NODE_OPTIONS: '--max-old-space-size=384' } },
  { name: 'node-26', node: 26 },
  { name: 'express-4', express: 4 },
  { name: 'express-5', express: 5 },
]

/** Everything that can be combined. One run of the rooms in it finds most of what any of the others finds. */
export const allAtOnce: World = {
  name: 'all-at-once',
  postgres: {
    major: 15,
    settings: {
      timezone: 'Asia/Shanghai',
      datestyle: 'German, DMY',
      default_transaction_isolation: 'serializable',
    },
    role: { search_path: 'app, public', intervalstyle: 'iso_8601', lock_timeout: '100ms' },
    roleSchema: 'app',
  },
  redis: 'tls',
  env: { TZ: 'America/St_Johns', LANG: 'tr_TR.UTF-8', NODE_OPTIONS: '--max-old-space-size=384' },
}

/**
 * Few worlds that have all that these have: what differs in one is added to another that is as usual there. A host app runs
 * in the process of the tests, so its world gets no Node, no variables and no ended connections. A world that is refused
 * stays alone.
 */
export function together(all: readonly World[]): readonly World[] {
  const joined: World[] = []
  for (const world of all) {
    const place = world.refused ? -1 : joined.findIndex((other) => canJoin(other, world))
    const other = joined[place]
    if (other) joined[place] = { ...other, ...world, name: `${other.name} + ${world.name}` }
    else joined.push(world)
  }
  return joined
}

function canJoin(one: World, other: World): boolean {
  if (one.refused) return false
  const { name: _, ...added } = other
  const isTaken = (key: string) => Object.hasOwn(one, key)
  if (Object.keys(added).some(isTaken)) return false
  const both: Omit<World, 'name'> = { ...one, ...added }
  return !both.express || !(both.env || both.node || both.endsConnections)
}

/** The rooms share one Redis with numbered databases, which these do not have, and start Postern by themselves. */
export const runsRooms = (world: World): boolean =>
  !hasSeveralRedis(world) && !world.express && !world.refused

export const hasSeveralRedis = ({ redis }: World): boolean => /sentinel|cluster/.test(redis ?? '')

/** The reason why a world cannot be had on this machine. Undefined if it can. */
export function whyMissing(world: World): string | undefined {
  if (world.redis === 'valkey' && !findOnPath('valkey-server')) return 'no valkey-server here'
  try {
    if (world.postgres?.pooler) findOrInstall(['pgbouncer'], 'pgbouncer', 'no pgbouncer here')
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

const ours: World = { name: 'ours' }

export function findWorld(name = ours.name): World {
  if (name === ours.name) return ours
  const found = [allAtOnce, ...worlds].find((world) => world.name === name)
  if (!found)
    throw new Error(`no world ${name}; there are ${worlds.map((one) => one.name).join(', ')}`)
  return found
}
