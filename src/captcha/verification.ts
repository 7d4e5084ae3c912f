/** A verification with its facts: read from a request, sealed in its row, and opened for later ways. */
import { type Channel, channels } from '../base/channel.ts'
import { type CodeId, newId } from '../base/ids.ts'
import type { Params } from '../notice/create.ts'
import type { ReadMessage } from '../notice/message.ts'
import type { Verification } from '../notice/verifications.ts'
import { addressKindOf } from '../recipient/channels.ts'
import { type NormaliseRecipient, refusedRecipient } from '../recipient/normalise-recipient.ts'
import type { Caller, Lane } from '../rules/caller.ts'
import { invalidRequest, type Refused } from '../rules/refused.ts'
import type { SharedOwner } from './code-names.ts'
import type { CodeAsked } from './code-sends.ts'
import type { KnownBrowsers } from './known-browsers.ts'

export interface Way {
  channel: Channel
  to: string
}

/** The facts that are sealed in the row, because they name the person. */
interface Facts {
  /** The number, in its normal form. */
  to: string
  ways: readonly Way[]
  template: string
  params: Params
  locale?: string | undefined
  /** The person's address, as the limits of the first way counted it. */
  ip: string
  /** The policy of the limit check, if the caller named one. */
  policy?: string | undefined
  lane: Lane
}

export type OpenVerification = Omit<Verification, 'sealed' | 'ways'> & Facts

/** A channel to a number, and the channel to an address of mail. They read the addresses of a request. */
export const numberChannel = channels.find((channel) => !leadsToMail(channel)) as Channel
const mailChannel = channels.find(leadsToMail) as Channel

function leadsToMail(channel: Channel): boolean {
  return addressKindOf(channel).domainOf !== undefined
}

/** The code lies with the codes of the number, so any send to the number replaces it. */
export function homeOf({ app, scene, ways, to }: OpenVerification): SharedOwner {
  const way = ways.find((each) => each.to === to) ?? (ways[0] as Way)
  const addresses = Object.fromEntries(ways.map((each) => [each.channel, each.to]))
  return { app, scene, ...way, addresses }
}

export const sealFacts = (
  { id, to, ways, template, params, locale, ip, policy, lane }: OpenVerification,
  seal: (text: string, context: CodeId) => Buffer,
): Buffer =>
  seal(JSON.stringify({ to, ways, template, params, locale, ip, policy, lane } satisfies Facts), id)

export function openVerification(
  { sealed, ways: _, ...row }: Verification,
  unseal: (sealed: Uint8Array, context: CodeId) => string,
): OpenVerification {
  return { ...row, ...(JSON.parse(unseal(sealed, row.id)) as Facts) }
}

/** The caller of the request that began the verification. A worker begins later ways in its name. */
export const callerOf = ({ app, keyId, ip, isPage }: OpenVerification): Caller => ({
  ...{ app, keyId, ip, isPage },
  origins: [],
})

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
