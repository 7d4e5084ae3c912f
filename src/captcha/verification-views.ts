/** Finds verifications, and answers about them. Nothing here changes one. */
import type { Channel } from '../base/channel.ts'
import { isId } from '../base/ids.ts'
import type { Accepted } from '../notice/message.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { VerificationEnd } from '../notice/verifications.ts'
import { maskRecipient } from '../recipient/channels.ts'
import type { Caller } from '../rules/caller.ts'
import type { Quota } from '../rules/quota.ts'
import type { Refused } from '../rules/refused.ts'
import type { LiveCode } from './code-answers.ts'
import type { CodeStore } from './code-store.ts'
import type { SendWay } from './send-way.ts'
import {
  callerOf,
  homeOf,
  numberChannel,
  type OpenVerification,
  openVerification,
  type Way,
} from './verification.ts'

/** `id`: of the verification. */
interface AcceptedWay extends Omit<Accepted, 'channel' | 'template'> {
  workflow: string
  /** `index` counts from 1, `of` is the number of ways. `next`: the channel that `next` would begin. */
  way: { channel: Channel; index: number; of: number; next?: Channel }
}

export type WayOutcome = AcceptedWay | Refused

export interface ViewDeps {
  quota: Pick<Quota, 'nextInMs'>
  codes: Pick<CodeStore, 'look'>
  ways: Pick<SendWay, 'wayOf'>
  store: Pick<NoticeStore, 'find' | 'findVerification'>
  unseal: (sealed: Uint8Array, context: string) => string
  /** PostgreSQL's time. */
  nowMs: () => number
}

export function createVerificationViews(deps: ViewDeps) {
  const { quota, codes, ways, store, unseal, nowMs } = deps

  return { find, findFor, liveOf, current, answerOf, view }

  async function find(app: string, id: string): Promise<OpenVerification | undefined> {
    const row = isId(id) ? await store.findVerification(app, id) : undefined
    return row && openVerification(row, unseal)
  }

  /** A page finds only verifications that a page began. */
  async function findFor(caller: Caller, id: string): Promise<OpenVerification | undefined> {
    const found = await find(caller.app, id)
    return caller.isPage && !found?.isPage ? undefined : found
  }

  /** The code of a verification that is not over. */
  async function liveOf(verification: OpenVerification): Promise<LiveCode | Refused> {
    const live = await codes.look(homeOf(verification), verification.id, verification.lane)
    return live.result === 'gone' ? { outcome: 'code_gone', reason: live.reason } : live
  }

  /** The row has no note of a code that was replaced, lost or expired. */
  async function endOf(verification: OpenVerification): Promise<VerificationEnd | undefined> {
    if (verification.ended) return verification.ended
    return 'outcome' in (await liveOf(verification)) ? 'gone' : undefined
  }

  /** The answer for the latest way. A page can ask so whether a failure began the next way. */
  async function current(id: string, caller: Caller): Promise<WayOutcome> {
    const found = await findFor(caller, id)
    if (!found) return { outcome: 'not_found' }
    const live = await liveOf(found)
    if ('outcome' in live) return live
    const latest = found.notices.findLastIndex((noticeId) => noticeId !== null)
    const way = found.ways[latest]
    if (!way) return { outcome: 'not_found' }
    const counted = ways.wayOf(found, way, callerOf(found))
    const waitMs = 'outcome' in counted ? 0 : await quota.nextInMs(counted.policy, counted.fields)
    return answerOf(found, latest, {
      expiresAt: live.expiresAt.toISOString(),
      resendAt: new Date(nowMs() + waitMs).toISOString(),
      codeLength: live.length,
    })
  }

  /** `members`: as of every send of a code. */
  function answerOf(
    found: OpenVerification,
    way: number,
    members: Pick<Accepted, 'expiresAt' | 'resendAt' | 'codeLength' | 'lockedForMs'>,
  ): AcceptedWay {
    const { id, workflow, to, scene, ways: all } = found
    const { expiresAt, resendAt, codeLength, lockedForMs } = members
    const { channel } = all[way] as Way
    const isRouted = (each: Way) => !('outcome' in ways.wayOf(found, each, callerOf(found)))
    const next = all.slice(way + 1).find(isRouted)?.channel
    return {
      ...{ outcome: 'accepted', id, workflow },
      way: { channel, index: way + 1, of: all.length, ...(next ? { next } : {}) },
      ...{ to: maskRecipient(numberChannel, to), scene, state: 'pending', expiresAt, resendAt },
      ...(codeLength === undefined ? {} : { codeLength }),
      ...(lockedForMs === undefined ? {} : { lockedForMs }),
    }
  }

  /** The ways so far, and how each ended. */
  async function view(app: string, id: string) {
    const found = await find(app, id)
    if (!found) return undefined
    const { workflow, scene, to, notices } = found
    const [ended, ...rows] = await Promise.all([
      endOf(found),
      ...notices.map((noticeId) => noticeId && store.find(app, noticeId)),
    ])
    const views = found.ways.map(({ channel }, way) => {
      const noticeId = notices[way]
      if (noticeId === undefined) return { channel, state: 'waiting' as const }
      if (noticeId === null) return { channel, state: 'left_out' as const }
      // A test recipient's notice has no row.
      const row = rows[way] || undefined
      return {
        ...{ channel, noticeId, state: row?.state ?? 'sent' },
        ...(row?.error ? { error: row.error } : {}),
        ...(row?.codeEnd === 'passed' ? { passed: true as const } : {}),
      }
    })
    const shown = { id, workflow, scene, to: maskRecipient(numberChannel, to) }
    return { ...shown, ...(ended ? { ended } : {}), ways: views }
  }
}
