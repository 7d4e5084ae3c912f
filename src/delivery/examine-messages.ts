import { type Channel, channels } from '../base/channel.ts'
import { about, type Finding } from '../base/finding.ts'
import type { Links } from '../notice/code-link.ts'
import type { Templates } from '../notice/templates.ts'
import { addressKindOf, channelsOfKind } from '../recipient/channels.ts'
import type { Routes } from './provider-order.ts'

/** The parts of the policy file that decide whether a message can be sent. */
interface Carrying {
  readonly routes: Routes
  readonly providers: Readonly<Record<string, { readonly kind: string }>>
  readonly code: { readonly length: number; readonly ttl: number }
  readonly links: Links
  readonly workflows: Readonly<Record<string, readonly Channel[]>>
}

/** Whether each template has a route, and each route a template. */
export function examineMessages(file: Carrying, templates: Templates): Finding[] {
  return [
    ...channels.flatMap((channel) => examineRoutes(channel, file, templates)),
    ...examineWorkflows(file),
    ...examineLengths(file, templates),
    ...examineLinks(file.links, templates.showsLinks),
  ]
}

function examineRoutes(channel: Channel, file: Carrying, templates: Templates): Finding[] {
  const { ok, warning, error } = about('routes')
  const routes = file.routes[channel] ?? []
  /** One of them is enough, because all lead to the same addresses. */
  const ofKind = channelsOfKind(addressKindOf(channel))
  const isWritten = templates.findLocale('captcha', channel) !== undefined
  if (routes.length === 0) {
    const isReached = ofKind.some((each) => (file.routes[each] ?? []).length > 0)
    return isReached || channel !== ofKind[0]
      ? []
      : [
          warning(
            `no route for ${channel}`,
            `add one under routes.${channel} if you send ${channel}`,
          ),
        ]
  }
  if (!isWritten)
    return [
      error(
        `${channel} has a route, but the template captcha has no ${channel} file`,
        'add the file to the templates folder',
      ),
    ]
  const kinds = routes.flatMap(({ use }) =>
    use.map(({ provider }) => file.providers[provider]?.kind),
  )
  if (kinds.includes('sandbox')) {
    return [
      error(
        `${channel} uses a sandbox, which delivers nothing`,
        `name real providers in routes.${channel}`,
      ),
    ]
  }
  const isForAll = routes.some(({ match }) => Object.keys(match).length === 0)
  return [
    isForAll
      ? ok(`${channel}: ${routes.length} route(s), every message has one`)
      : warning(
          `${channel}: messages that match no route are refused`,
          'add a last route without match',
        ),
  ]
}

/** Ways without a route are left out, so a person is never offered them. */
function examineWorkflows({ workflows, routes }: Carrying): Finding[] {
  const { warning } = about('routes')
  return Object.entries(workflows).flatMap(([name, ways]) => {
    const missing = ways.filter((channel) => (routes[channel] ?? []).length === 0)
    const named = missing.map((channel) => `routes.${channel}`).join(', ')
    return missing.length === 0
      ? []
      : [warning(`workflow ${name} leaves out ${missing.join(', ')}: no route`, `add ${named}`)]
  })
}

function examineLengths(file: Carrying, templates: Templates): Finding[] {
  const { ok, warning } = about('templates')
  const { length, ttl: ttlMs } = file.code
  const long = templates
    .smsLengths({ length, ttlMs, links: file.links })
    .filter(({ segments }) => segments > 1)
  if (long.length === 0) return [ok('every SMS template fits into one message')]
  return long.map(({ template, locale, segments, odd }) => {
    const text = `${template}/sms.${locale} needs ${segments} messages, and carriers bill each one`
    // With many of them, the language needs them.
    if (odd.length === 0 || odd.length > fewCharacters) return warning(text, 'shorten it')
    const names = odd.map((char) => `"${char}" (${pointOf(char)})`).join(', ')
    return warning(
      `${text}. The GSM 7-bit alphabet lacks ${names}, so a message has room for 70 characters in place of 160`,
      'replace these characters, such as a curved apostrophe by a straight one, or shorten it',
    )
  })
}

function examineLinks(links: Links, isShown: boolean): Finding[] {
  if (links.size === 0) return []
  const { ok, warning } = about('links')
  const scenes = [...links.keys()].join(', ')
  const local = [...links].filter(([, address]) => address.startsWith('http:'))
  return [
    isShown
      ? ok(`the messages of ${scenes} open a page with the code`)
      : warning(
          `no template shows the link of ${scenes}`,
          'put {{link}} between {{#link}} and {{/link}} into a template with {{code}}',
        ),
    ...local.map(([scene]) =>
      warning(`the link of ${scene} opens only on this machine`, 'write an https:// address'),
    ),
  ]
}

const fewCharacters = 5

const pointOf = (char: string) =>
  `U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
