/**
 * From the body of a send to what the rooms behind take. Whether recipient, channel, template and variables fit
 * is found out before anything is counted: a message that could only fail is refused at the door.
 */
import type { ApiKey } from '../access/api-keys.ts'
import type { Channel } from '../base/channel.ts'
import { Problem } from '../base/problems.ts'
import type { Params } from '../notice/create.ts'
import type { NormaliseRecipient } from '../recipient/normalise-recipient.ts'
import type { Origin } from '../rules/quota.ts'
import { invalid } from './problem.ts'

/** One normalised recipient, or the problem that says why not. */
export function recipientOf(
  normalise: NormaliseRecipient,
  body: { channel: Channel; to: string },
): { to: string; country: string } {
  const result = normalise(body.channel, body.to)
  if (result.kind === 'ok') return result
  throw result.kind === 'invalid'
    ? invalidRecipient(result)
    : new Problem('destination_not_allowed')
}

export function invalidRecipient({ because }: { because?: 'no_country' }): Problem {
  return new Problem('invalid_recipient', because ? { message: noCountry } : {})
}

const noCountry = {
  en: "This number has no country. Write it with + and the country's code, for example +8613800138000.",
  zh: '号码缺少国家/地区代码，请写成 + 加国家/地区代码的形式，例如 +8613800138000。',
}

/** What limits look at besides. */
export function originOf(key: ApiKey, ip: string, country: string): Origin {
  return { ip, country, keyId: key.id, isPage: key.kind === 'publishable' }
}

/** What is known of messages before one is asked for. */
export interface Sendable {
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
}

/**
 * The locale to render in and the variables it takes, once channel, template and variables are known to fit
 * together. A variable that the template never uses is refused, and one that only another locale of it uses is
 * left out: the same message with other words behind it would be other content to the duplicate rule.
 */
export function contentOf(
  { templates, isRouted, isTestRecipient }: Sendable,
  body: { channel: Channel; template: string; locale?: string | undefined; params: Params },
  /** Of the app whose key it is, to a recipient of this country. */
  sent: { app: string; to: string; country: string },
  /** Variables Postern adds itself; a caller may not set them. */
  reserved: readonly string[],
): { locale: string; params: Params } {
  const { channel, template } = body
  const { app, to, country } = sent
  if (!isTestRecipient(channel, to) && !isRouted({ app, country, channel, template })) {
    throw invalid('channel', `no route carries ${channel} for this recipient and template`)
  }
  const locale = templates.findLocale(template, channel, body.locale)
  if (!locale) {
    throw invalid(
      'template',
      templates.has(template) ? `has no ${channel} form` : 'there is no such template',
    )
  }
  for (const name of reserved) {
    if (Object.hasOwn(body.params, name)) throw invalid(`params.${name}`, 'is set by Postern')
  }
  const needed = templates.variables(template, channel, locale)
  for (const name of needed) {
    if (!Object.hasOwn(body.params, name) && !reserved.includes(name)) {
      throw invalid(`params.${name}`, 'the template needs it')
    }
  }
  const given = Object.entries(body.params)
  for (const [name] of given) {
    if (!needed.has(name) && !templates.uses(template, name)) {
      throw invalid(`params.${name}`, 'the template does not use it')
    }
  }
  return { locale, params: Object.fromEntries(given.filter(([name]) => needed.has(name))) }
}
