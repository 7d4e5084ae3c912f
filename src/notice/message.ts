/**
 * What captchas and notices have in common: what a send is asked with, what it comes to, and from the one the message
 * that can be sent. Whether recipient, channel, template and variables fit together is found out before anything is
 * counted: a message that could only fail is refused here.
 */
import type { Channel } from '../base/channel.ts'
import { maskRecipient } from '../recipient/mask-recipient.ts'
import {
  type NormaliseRecipient,
  type RefusedRecipient,
  refusedRecipient,
} from '../recipient/normalise-recipient.ts'
import { type InvalidRequest, invalidRequest, type Refused } from '../rules/refused.ts'
import type { CreatedNotice, Params } from './create.ts'

/** What captchas and notices are asked with, by HTTP or in process. */
export interface SendAsked {
  channel: Channel
  /** Of any spelling. */
  to: string
  template: string
  params: Params
  /** Of any spelling; the nearest edition of the template is sent. */
  locale?: string | undefined
  /** The address of the person who asked, where the caller is a server. */
  ip?: string | undefined
  /** 1 to 255 visible ASCII characters. A repeat with the same key makes no second message. */
  idempotencyKey?: string | undefined
}

/** The members of the answer by HTTP. */
export interface Accepted {
  outcome: 'accepted'
  id: string
  channel: Channel
  /** Masked. */
  to: string
  /** Of a notice. */
  template?: string
  /** Of a code, like the two below. */
  scene?: string
  codeLength?: number
  /** Checks of this recipient are locked for this caller, so the code passes no earlier. */
  lockedForMs?: number
  state: 'pending'
  /** ISO 8601, like `resendAt`: from then on the limits admit the same request again. */
  expiresAt: string
  resendAt: string
}

export type SendOutcome = Accepted | Refused

export interface Message {
  to: string
  country: string
  /** An edition of the template. */
  locale: string
  /** Those that this edition shows. */
  params: Params
}

export type ReadMessage = ReturnType<typeof createReadMessage>

/** Variables of a captcha's template that Postern fills in. */
const ownVariables = ['code', 'minutes', 'validity']

export function createReadMessage(deps: {
  normaliseRecipient: NormaliseRecipient
  templates: {
    has(template: string): boolean
    /** Undefined when the template is not made for this channel. */
    findLocale(template: string, channel: Channel, wanted?: string): string | undefined
    /** The variables that the message in this locale needs. */
    variables(template: string, channel: Channel, locale: string): ReadonlySet<string>
    /** Whether the template needs this variable in any channel and locale. */
    uses(template: string, variable: string): boolean
  }
  /** Whether a route of the policy file fits. */
  isRouted(message: { channel: Channel; country: string; template: string; app: string }): boolean
  /** Nothing is sent to one, so that it needs no route. */
  isTestRecipient(channel: Channel, to: string): boolean
}) {
  const { templates, normaliseRecipient, isRouted, isTestRecipient } = deps

  return function readMessage(
    kind: 'captcha' | 'notice',
    asked: SendAsked,
    app: string,
  ): Message | InvalidRequest | RefusedRecipient {
    const { channel, template, params } = asked
    const recipient = normaliseRecipient(channel, asked.to)
    if (recipient.kind !== 'ok') return refusedRecipient(recipient)
    const { to, country } = recipient
    if (!isTestRecipient(channel, to) && !isRouted({ app, country, channel, template })) {
      return invalidRequest(
        'channel',
        `no route carries ${channel} for this recipient and template`,
      )
    }
    const locale = templates.findLocale(template, channel, asked.locale)
    if (!locale) {
      const isKnown = templates.has(template)
      return invalidRequest(
        'template',
        isKnown ? `has no ${channel} form` : 'there is no such template',
      )
    }
    const needed = templates.variables(template, channel, locale)
    const reserved = kind === 'captcha' ? ownVariables : []
    const names = Object.keys(params)
    const wrong = (name: string, message: string) => invalidRequest(`params.${name}`, message)
    for (const name of names) if (reserved.includes(name)) return wrong(name, 'is set by Postern')
    for (const name of needed) {
      const isThere = Object.hasOwn(params, name) || reserved.includes(name)
      if (!isThere) return wrong(name, 'the template needs it')
    }
    for (const name of names) {
      // With other words behind it, the same message would be other content to the duplicate rule.
      const isUsed = needed.has(name) || templates.uses(template, name)
      if (!isUsed) return wrong(name, 'the template does not use it')
    }
    if (kind === 'captcha' && !needed.has('code')) {
      return invalidRequest('template', 'does not say the code')
    }
    // A variable that only another edition shows is left out, for the same reason.
    const shown = Object.entries(params).filter(([name]) => needed.has(name))
    return { to, country, locale, params: Object.fromEntries(shown) }
  }
}

/** What every accepted send is told. */
export function acceptedAs(
  { id, channel, to, expiresAt }: Omit<CreatedNotice, 'createdAt'>,
  resendAtMs: number,
): Accepted {
  return {
    outcome: 'accepted',
    id,
    channel,
    to: maskRecipient(channel, to),
    state: 'pending',
    expiresAt: expiresAt.toISOString(),
    resendAt: new Date(resendAtMs).toISOString(),
  }
}
