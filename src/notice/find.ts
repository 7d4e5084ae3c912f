/**
 * Finds notices for their senders: by id, or by recipient, channel and state.
 *
 * A search without a recipient, and a count, may read many rows of all apps. Sends use the same connections and the same
 * server. So few long reads run at a time, and apps take turns.
 */
import { idFloor } from '../base/ids.ts'
import { createTurns } from '../base/turns.ts'
import { Overloaded } from '../base/unavailable.ts'
import type { Database } from '../storage/database.ts'
import { createBrowse } from './browse.ts'
import type { NoticeState } from './states.ts'

/** At most this number of a recipient's latest codes is read. */
const maxCaptchas = 200
/** At most this number of notices, of all apps, is read for one page of a search without a recipient. */
const maxLookedAt = 100_000
const turnsOfLongReads = { maxUnderWay: 2, maxWaiting: 8, maxWaitMs: 1_000 }
/** Above all ids. */
const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

export function createFinder(database: Database) {
  const { browse } = createBrowse(database)
  const inTurn = createTurns(turnsOfLongReads)
  const inTurnOf = <Result>(app: string, read: () => Promise<Result>) =>
    inTurn({ app, caller: '' }, read, noTurn)

  async function findIds({ cursorId, app, limit, ...filter }: Search) {
    const { from = idFloor(0), before = lastId } = filter
    const continued = cursorId && cursorId < before ? cursorId : before
    const page = await inTurnOf(app, () =>
      browse({ ...filter, apps: [app], from, before: continued, limit: limit + 1, maxLookedAt }),
    )
    const ids = page.items.map(({ id }) => id)
    return ids.length > limit
      ? { ids: ids.slice(0, limit), nextId: ids[limit - 1] }
      : { ids, nextId: page.next }
  }

  async function findOfRecipient({ cursorId, limit, ...filter }: Search) {
    const where = whereOf(filter)
    const rows = await database.read((prisma) =>
      prisma.notice.findMany({
        where: cursorId ? { AND: [where, { id: { lt: cursorId } }] } : where,
        orderBy: { id: 'desc' },
        take: limit + 1,
      }),
    )
    const items = rows.slice(0, limit)
    return { items, nextId: rows.length > limit ? items.at(-1)?.id : undefined }
  }

  return {
    find(app: string, id: string) {
      return database.read((prisma) => prisma.notice.findFirst({ where: { id, app } }))
    },

    async scenesOf(app: string, recipientHashes: readonly Uint8Array[]): Promise<string[]> {
      const captchas = await database.read((prisma) =>
        prisma.notice.findMany({
          where: {
            app,
            recipientHash: { in: recipientHashes.map((hash) => Uint8Array.from(hash)) },
            kind: 'captcha',
          },
          select: { scene: true },
          orderBy: { id: 'desc' },
          take: maxCaptchas,
        }),
      )
      return [...new Set(captchas.flatMap(({ scene }) => scene ?? []))]
    },

    /** A page of notices, newest first; it may have fewer than `limit`. `nextId` is the `cursorId` of the next page. */
    async search(asked: Search) {
      if (asked.recipientHashes) return findOfRecipient(asked)
      const { ids, nextId } = await findIds(asked)
      const items = await database.read((prisma) =>
        prisma.notice.findMany({ where: { id: { in: ids } }, orderBy: { id: 'desc' } }),
      )
      return { items, nextId }
    },

    /** The number of matches, and of those whose code passed. Reads every row that matches. */
    countNotices(filter: NoticeFilter): Promise<{ total: number; passed: number }> {
      return inTurnOf(filter.app, () =>
        database.read(async (prisma) => {
          const groups = await prisma.notice.groupBy({
            by: ['codeEnd'],
            where: whereOf(filter),
            _count: true,
          })
          const sum = (counted: typeof groups) =>
            counted.reduce((total, { _count }) => total + _count, 0)
          const passed = sum(groups.filter(({ codeEnd }) => codeEnd === 'passed'))
          return { total: sum(groups), passed }
        }),
      )
    },
  }
}

function noTurn(): never {
  throw new Overloaded('postgresql', 'too many searches wait')
}

type Search = NoticeFilter & { cursorId?: string; limit: number }

export interface NoticeFilter {
  app: string
  recipientHashes?: readonly Uint8Array[]
  channel?: string | undefined
  state?: NoticeState | undefined
  kind?: string | undefined
  scenes?: readonly string[] | undefined
  hasPassed?: boolean | undefined
  /** Range of ids: `from` included, `before` not. */
  from?: string
  before?: string
}

function whereOf(filter: NoticeFilter) {
  const { app, recipientHashes, channel, state, kind, scenes, hasPassed, from, before } = filter
  return {
    app,
    ...(recipientHashes
      ? { recipientHash: { in: recipientHashes.map((hash) => Uint8Array.from(hash)) } }
      : {}),
    ...(channel ? { channel } : {}),
    ...(state ? { state } : {}),
    ...(kind ? { kind } : {}),
    ...(scenes ? { scene: { in: [...scenes] } } : {}),
    ...(hasPassed === true ? { codeEnd: 'passed' } : {}),
    // NULL is not equal to any text, so it needs another condition.
    ...(hasPassed === false ? { OR: [{ codeEnd: null }, { codeEnd: { not: 'passed' } }] } : {}),
    id: { ...(from ? { gte: from } : {}), ...(before ? { lt: before } : {}) },
  }
}
