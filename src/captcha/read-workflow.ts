/** Reads the request for a verification: its addresses, and the ways that can carry its code. */
import type { Channel } from '../base/channel.ts'
import { newId } from '../base/ids.ts'
import type { ReadMessage } from '../notice/message.ts'
import { type NormaliseRecipient, refusedRecipient } from '../recipient/normalise-recipient.ts'
import type { Caller } from '../rules/caller.ts'
import { invalidRequest, type Refused } from '../rules/refused.ts'
import type { CodeAsked } from './code-sends.ts'
import type { KnownBrowsers } from './known-browsers.ts'
import {
  leadsToMail,
  mailChannel,
  numberChannel,
  type OpenVerification,
  type Way,
} from './verification.ts'

/** `to`: the number. */
export interface WorkflowAsked extends CodeAsked {
  workflow: string
  /** The address of the ways by mail. */
  email?: string | undefined
}

export interface ReadWorkflowDeps {
  /** The channels of each workflow of the policy file. */
  workflows: Readonly<Record<string, readonly Channel[]>>
  normaliseRecipient: NormaliseRecipient
  readMessage: ReadMessage
  known: Pick<KnownBrowsers, 'laneOf'>
  /** PostgreSQL's time. */
  nowMs: () => number
}

/** A way without an address or a route is left out. */
export function createReadWorkflow(deps: ReadWorkflowDeps) {
  const { workflows, normaliseRecipient, readMessage, known, nowMs } = deps

  return async function readWorkflow(
    asked: WorkflowAsked,
    caller: Caller,
  ): Promise<OpenVerification | Refused> {
    const { app, keyId, isPage } = caller
    const { workflow, scene, template, params, locale, policy, ip = caller.ip } = asked
    const names = Object.hasOwn(workflows, workflow) ? workflows[workflow] : undefined
    if (!names) return invalidRequest('workflow', 'noWorkflow')
    const number = normaliseRecipient(numberChannel, asked.to)
    if (number.kind !== 'ok') return refusedRecipient(number)
    const mail =
      asked.email === undefined ? undefined : normaliseRecipient(mailChannel, asked.email)
    if (mail && mail.kind !== 'ok') return refusedRecipient(mail)
    const ways: Way[] = []
    for (const channel of names) {
      const to = leadsToMail(channel) ? mail?.to : number.to
      if (to === undefined) continue
      const message = readMessage('captcha', { ...asked, channel, to }, caller)
      if (!('outcome' in message)) ways.push({ channel, to })
      else if (!hasNoRoute(message)) return message
    }
    if (ways.length === 0) return invalidRequest('workflow', 'noWay')
    const lane = await known.laneOf(asked.known, ...ways.map((way) => ({ app, ...way })))
    return {
      ...{ id: newId(nowMs()), app, scene, workflow, keyId, isPage, notices: [], ended: null },
      ...{ to: number.to, ways, template, params, locale, ip, policy, lane },
    }
  }
}

/** The channel of the way has no route for this recipient. */
export const hasNoRoute = (refused: Refused): boolean =>
  refused.outcome === 'invalid_request' && refused.errors[0]?.path === 'channel'
