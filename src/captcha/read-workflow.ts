/** Reads the request for a verification: its addresses, and the ways that can carry its code. */
import type { Channel } from '../base/channel.ts'
import { newId } from '../base/ids.ts'
import { type NormaliseRecipient, refusedRecipient } from '../recipient/normalise-recipient.ts'
import type { Caller } from '../rules/caller.ts'
import { invalidRequest, type Refused } from '../rules/refused.ts'
import type { KnownBrowsers } from './known-browsers.ts'
import type { CaptchaAsked } from './send.ts'
import type { SendWay } from './send-way.ts'
import {
  callerOf,
  leadsToMail,
  mailChannel,
  numberChannel,
  type OpenVerification,
  type Way,
} from './verification.ts'

/** `to`: the number. */
export interface WorkflowAsked extends Omit<CaptchaAsked, 'channel' | 'code'> {
  workflow: string
  /** The address of the ways by mail. */
  email?: string | undefined
}

export interface ReadWorkflowDeps {
  /** The channels of each workflow of the policy file. */
  workflows: Readonly<Record<string, readonly Channel[]>>
  normaliseRecipient: NormaliseRecipient
  known: Pick<KnownBrowsers, 'laneOfAll'>
  ways: Pick<SendWay, 'wayOf'>
  /** PostgreSQL's time. */
  nowMs: () => number
}

/** A way without an address or a route is left out. */
export function createReadWorkflow(deps: ReadWorkflowDeps) {
  const { workflows, normaliseRecipient, ways, nowMs } = deps

  return async function readWorkflow(
    asked: WorkflowAsked,
    caller: Caller,
  ): Promise<OpenVerification | Refused> {
    const { app, keyId, ip, isPage, isInProcess = false } = caller
    const { workflow, scene, template, params, locale, policy } = asked
    const names = Object.hasOwn(workflows, workflow) ? (workflows[workflow] ?? []) : undefined
    if (!names) return invalidRequest('workflow', 'noWorkflow')
    const number = normaliseRecipient(numberChannel, asked.to)
    if (number.kind !== 'ok') return refusedRecipient(number)
    const mail =
      asked.email === undefined ? undefined : normaliseRecipient(mailChannel, asked.email)
    if (mail && mail.kind !== 'ok') return refusedRecipient(mail)
    const read: OpenVerification = {
      ...{ id: newId(nowMs()), app, scene, workflow, keyId, isPage, notices: [], ended: null },
      ...{ to: number.to, ways: [], template, params, locale, policy, ip: asked.ip ?? ip },
      lane: 'stranger',
    }
    const found: Way[] = []
    for (const channel of names) {
      const to = leadsToMail(channel) ? mail?.to : number.to
      if (to === undefined) continue
      const way = ways.wayOf(read, { channel, to }, callerOf(read), isInProcess)
      if (!('outcome' in way)) found.push({ channel, to })
      else if (!hasNoRoute(way)) return way
    }
    if (found.length === 0) return invalidRequest('workflow', 'noWay')
    const lane = await deps.known.laneOfAll(asked.known, app, found)
    return { ...read, ways: found, lane }
  }
}

/** The channel of the way has no route for this recipient. */
export const hasNoRoute = (refused: Refused): boolean =>
  refused.outcome === 'invalid_request' && refused.errors[0]?.path === 'channel'
