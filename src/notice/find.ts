/** Finds notices for their senders: by id, or by recipient, channel and state. */
import type { Database } from '../storage/database.ts'
import type { NoticeState } from './states.ts'

/** The number of a recipient's latest codes that are read. */
const maxCaptchas = 200

export function createFinder(database: Database) {
  return {
    find(app: string, id: string) {
      return database.read((prisma) => prisma.notice.findFirst({ where: { id, app } }))
    },

    /** The scenes of recent codes. */
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

    /** Newest first; `before` is the id of the last item of the page before. */
    search(filter: {
      app: string
      recipientHashes?: readonly Uint8Array[]
      channel?: string
      state?: NoticeState
      before?: string
      limit: number
    }) {
      return database.read((prisma) =>
        prisma.notice.findMany({
          where: {
            app: filter.app,
            ...(filter.recipientHashes
              ? {
                  recipientHash: {
                    in: filter.recipientHashes.map((hash) => Uint8Array.from(hash)),
                  },
                }
              : {}),
            ...(filter.channel ? { channel: filter.channel } : {}),
            ...(filter.state ? { state: filter.state } : {}),
            ...(filter.before ? { id: { lt: filter.before } } : {}),
          },
          orderBy: { id: 'desc' },
          take: filter.limit,
        }),
      )
    },
  }
}
