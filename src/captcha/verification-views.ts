/** Answers about verifications. */
import type { Channel } from '../base/channel.ts'
import { isId } from '../base/ids.ts'
import type { Accepted } from '../notice/message.ts'
import type { NoticeStore } from '../notice/store.ts'
import { maskRecipient } from '../recipient/channels.ts'
import type { Quota } from '../rules/quota.ts'
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
export interface AcceptedWay extends Omit<Accepted, 'channel' | 'template'> {
  workflow: string
  /** `index` counts from 1, `of` is the number of ways. `next`: the channel that `next` would begin. */
  way: { channel: Channel; index: number; of: number; next?: Channel }
}

type Members = Pick<Accepted, 'expiresAt' | 'resendAt' | 'codeLength' | 'lockedForMs'>

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

  return { find, currentAnswer, answerNow, answerOf, view }

  async function find(app: string, id: string): Promise<OpenVerification | undefined> {
    const row = isId(id) ? await store.findVerification(app, id) : undefined
    return row && openVerification(row, unseal)
  }

  /** The answer for the latest way, if the code still lives. */
  async function currentAnswer(app: string, id: string): Promise<AcceptedWay | undefined> {
    const found = await find(app, id)
    const live = found && (await codes.look(homeOf(found), id))
    return found && live?.result === 'live' ? answerNow(found, live) : undefined
  }

  async function answerNow(
    found: OpenVerification,
    live: LiveCode,
  ): Promise<AcceptedWay | undefined> {
    const way = found.notices.findLastIndex((noticeId) => noticeId !== null)
    return way < 0 ? undefined : answerOf(found, way, await membersNow(found, way, live))
  }

  async function membersNow(found: OpenVerification, way: number, live: LiveCode) {
    const counted = ways.wayOf(found, found.ways[way] as Way, callerOf(found))
    const waitMs = 'outcome' in counted ? 0 : await quota.nextInMs(counted.policy, counted.fields)
    return {
      expiresAt: live.expiresAt.toISOString(),
      resendAt: new Date(nowMs() + waitMs).toISOString(),
      codeLength: live.length,
    }
  }

  function answerOf(
    found: OpenVerification,
    way: number,
    { expiresAt, resendAt, codeLength, lockedForMs }: Members,
  ): AcceptedWay {
    const { id, workflow, to, scene, ways: all } = found
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
    const { workflow, scene, to, ended, notices } = found
    const rows = await Promise.all(notices.map((noticeId) => noticeId && store.find(app, noticeId)))
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
