/**
 * The common parts of captchas and notices: the request, its outcome, and the message to send. Recipient, channel,
 * template and variables are checked together before anything is counted, so a message that must fail is refused here.
 */
import type { Channel } from '../base/channel.ts'
import type { IdempotencyKey } from '../base/ids.ts'
import type { FieldWord } from '../base/words.ts'
import { maskRecipient } from '../recipient/channels.ts'
import {
  type NormaliseRecipient,
  type RefusedRecipient,
  refusedRecipient,
} from '../recipient/normalise-recipient.ts'
import type { Caller } from '../rules/caller.ts'
import { type InvalidRequest, invalidRequest, type Refused } from '../rules/refused.ts'
import type { Links } from './code-link.ts'
import type { CreatedNotice, Params } from './create.ts'
import type { NoticeKind } from './states.ts'
import type { Templates } from './templates.ts'

/** The members that captchas and notices share, by HTTP or in process. */
export interface SendAsked {
  channel: Channel
  /** In any spelling. */
  to: string
  template: string
  params: Params
  /** In any spelling. The nearest edition of the template is sent. */
  locale?: string | undefined
  /** The address of the person, if the caller is a server. */
  ip?: string | undefined
  /** 1 to 255 visible ASCII characters. A repeat with the same key makes no second message. */
  idempotencyKey?: IdempotencyKey | undefined
}

/** The members of the HTTP answer. */
export interface Accepted {
  outcome: 'accepted'
  id: string
  channel: Channel
  /** Masked. */
  to: string
  /** Only for notices. */
  template?: string
  /** Only for codes, like `codeLength` and `lockedForMs`. */
  scene?: string
  codeLength?: number
  /** Milliseconds for which checks of this recipient are locked for this caller. The code does not pass earlier. */
  lockedForMs?: number
  state: 'pending'
  /** ISO 8601, like `resendAt`. From `resendAt` on the limits admit the same request again. */
  expiresAt: string
  resendAt: string
}

export type SendOutcome = Accepted | Refused

export interface Message {
  to: string
  country: string
  /** The locale of the chosen edition. */
  locale: string
  /** The variables that this edition shows. */
  params: Params
  /** The names of the providers of its route. */
  providers: readonly string[]
}

export type ReadMessage = ReturnType<typeof createReadMessage>

/** Variables in templates of captchas that Postern sets. */
const ownVariables = ['code', 'minutes', 'validity', 'link']

export function createReadMessage(deps: {
  normaliseRecipient: NormaliseRecipient
  templates: Pick<Templates, 'has' | 'isOfPlugin' | 'findLocale' | 'edition' | 'uses'>
  links: Links
  /** The providers of the route that fits and that serve the country, by name. Undefined if no route fits. */
  providersOf(message: {
    channel: Channel
    country: string
    template: string
    app: string
  }): readonly string[] | undefined
  /** Test recipients get no messages and need no route. */
  isTestRecipient(to: string): boolean
}) {
  const { templates, normaliseRecipient, providersOf, isTestRecipient } = deps

  return function readMessage(
    kind: NoticeKind,
    asked: SendAsked & { scene?: string },
    { app, isInProcess = false }: Pick<Caller, 'app' | 'isInProcess'>,
  ): Message | InvalidRequest | RefusedRecipient {
    const { channel, template, params } = asked
    const recipient = normaliseRecipient(channel, asked.to)
    if (recipient.kind !== 'ok') return refusedRecipient(recipient)
    const { to, country } = recipient
    const providers = isTestRecipient(to) ? [] : providersOf({ app, country, channel, template })
    if (!providers) return invalidRequest('channel', 'noRoute', { channel })
    if (!isTestRecipient(to) && providers.length === 0) {
      return refusedRecipient({ kind: 'not_allowed', to, country, because: 'country' })
    }
    const isKnown = templates.has(template) && (isInProcess || !templates.isOfPlugin(template))
    if (!isKnown) return invalidRequest('template', 'noTemplate')
    const locale = templates.findLocale(template, channel, asked.locale, country)
    if (!locale) return invalidRequest('template', 'noVariant', { channel })
    const edition = templates.edition(template, channel, locale, country)
    const needed = edition.variables
    const reserved = kind === 'captcha' ? ownVariables : []
    const names = Object.keys(params)
    const wrong = (name: string, word: FieldWord) => invalidRequest(`params.${name}`, word)
    for (const name of names) if (reserved.includes(name)) return wrong(name, 'setByPostern')
    for (const name of needed) {
      const isThere = Object.hasOwn(params, name) || reserved.includes(name)
      if (!isThere) return wrong(name, 'needed')
      if (kind === 'captcha' && name === 'link' && !deps.links.has(asked.scene ?? ''))
        return invalidRequest('template', 'noLink')
    }
    for (const name of names) {
      // With an unused variable, the same message would look like other content to the duplicate rule.
      const isUsed = needed.has(name) || templates.uses(template, name)
      if (!isUsed) return wrong(name, 'unused')
    }
    for (const name of edition.pathVariables ?? []) {
      const isOfDots = /^\.*$/.test(String(params[name]))
      if (isOfDots) return wrong(name, 'onlyDots')
    }
    if (kind === 'captcha' && !needed.has('code')) {
      return invalidRequest('template', 'noCode')
    }
    // Variables of other editions are left out for the same reason.
    const shown = Object.entries(params).filter(([name]) => needed.has(name))
    return { to, country, locale, params: Object.fromEntries(shown), providers }
  }
}

/** The members of every accepted answer, in the order of the documentation. */
export function acceptedOf(
  { id, channel, to, expiresAt }: Omit<CreatedNotice, 'createdAt'>,
  ofKind: Partial<Accepted>,
  resendAtMs: number,
): Accepted {
  const { scene, template, ...others } = ofKind
  return {
    outcome: 'accepted',
    id,
    channel,
    to: maskRecipient(channel, to),
    ...(scene === undefined ? {} : { scene }),
    ...(template === undefined ? {} : { template }),
    state: 'pending',
    expiresAt: expiresAt.toISOString(),
    resendAt: new Date(resendAtMs).toISOString(),
    ...others,
  }
}
