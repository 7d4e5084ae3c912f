import { type Channel, channels } from '../base/channel.ts'
import { about, type Finding } from '../base/finding.ts'
import type { Routes } from './provider-order.ts'
import type { Templates } from './templates.ts'

/** What of the policy file decides whether a message can be carried. */
interface Carrying {
  readonly routes: Routes
  readonly providers: Readonly<Record<string, { readonly kind: string }>>
  readonly code: { readonly length: number }
}

/** Whether what can be said can also be carried. */
export function examineMessages(file: Carrying, templates: Templates): Finding[] {
  return [
    ...channels.flatMap((channel) => examineRoutes(channel, file, templates)),
    ...examineLengths(file, templates),
  ]
}

function examineRoutes(channel: Channel, file: Carrying, templates: Templates): Finding[] {
  const { ok, warning, error } = about('routes')
  const routes = file.routes[channel]
  const isWritten = templates.findLocale('captcha', channel) !== undefined
  if (routes.length === 0)
    return [
      warning(`no route carries ${channel}`, `add one under routes.${channel}, or leave it so`),
    ]
  if (!isWritten)
    return [
      error(
        `${channel} has a route, and the template captcha has no ${channel} form`,
        'add it to the templates folder',
      ),
    ]
  const kinds = routes.flatMap(({ use }) =>
    use.map(({ provider }) => file.providers[provider]?.kind),
  )
  if (kinds.includes('sandbox')) {
    return [
      error(
        `${channel} may go to a sandbox, which delivers nothing`,
        `name real providers in routes.${channel}`,
      ),
    ]
  }
  const isForAll = routes.some(({ match }) => Object.keys(match).length === 0)
  return [
    isForAll
      ? ok(`${channel}: ${routes.length} route(s), the last resort fits every message`)
      : warning(
          `${channel}: no route fits every message; what none fits is refused`,
          'add a route without match',
        ),
  ]
}

function examineLengths(file: Carrying, templates: Templates): Finding[] {
  const { ok, warning } = about('templates')
  const long = templates.smsLengths(file.code.length).filter(({ segments }) => segments > 1)
  if (long.length === 0) return [ok('every SMS template fits into one message')]
  return long.map(({ template, locale, segments }) =>
    warning(
      `${template}/sms.${locale} takes ${segments} messages; carriers bill each`,
      'shorten it',
    ),
  )
}
