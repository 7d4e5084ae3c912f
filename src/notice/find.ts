/** Finds notices for their senders: by id, or by recipient, channel and state. */
import { createBatcher } from '../base/batcher.ts'
import type { Database } from '../storage/database.ts'
import type { NoticeState } from './states.ts'

/** At most this number of a recipient's latest codes is read. */
const maxCaptchas = 200

export function createFinder(database: Database) {
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

    /** A page of notices, newest first. `cursorId` is the id of the last item of the previous page. */
    search({ cursorId, limit, ...filter }: NoticeFilter & { cursorId?: string; limit: number }) {
      const where = whereOf(filter)
      return database.read((prisma) =>
        prisma.notice.findMany({
          where: cursorId ? { AND: [where, { id: { lt: cursorId } }] } : where,
          orderBy: { id: 'desc' },
          take: limit,
        }),
      )
    },

    /** The number of matches, and of those whose code passed. One count at a time, because it may read many rows. */
    countNotices: createBatcher<NoticeFilter, { total: number; passed: number }>({
      maxItems: 1,
      maxConcurrent: 1,
      run: ([filter]) =>
        database.read(async (prisma) => {
          const groups = await prisma.notice.groupBy({
            by: ['codeEnd'],
            where: whereOf(filter as NoticeFilter),
            _count: true,
          })
          const sum = (counted: typeof groups) =>
            counted.reduce((total, { _count }) => total + _count, 0)
          const passed = sum(groups.filter(({ codeEnd }) => codeEnd === 'passed'))
          return [{ total: sum(groups), passed }]
        }),
    }),
  }
}

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
