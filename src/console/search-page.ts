/** The first page: one field for a phone number, a mail address or a notice id, and the service status. */

import { html } from '../base/html.ts'
import { isId } from '../base/ids.ts'
import { limitableAddress } from '../base/limitable-address.ts'
import { Unavailable } from '../base/unavailable.ts'
import { channelsFor } from '../recipient/channels.ts'
import type { NormaliseRecipient } from '../recipient/normalise-recipient.ts'
import type { DeliveryState } from './delivery-page.ts'
import type { LastDay } from './last-day.ts'
import type { LookedAt, Sealing, WaysOf } from './looked-at.ts'
import type { ConsoleRoute, View, Visit } from './page.ts'
import { searchForm } from './parts.ts'
import { todayView } from './today-view.ts'

export function searchRoutes(deps: {
  normaliseRecipient: NormaliseRecipient
  sealing: Sealing
  deliveryState: DeliveryState
  lastDay: LastDay
  waysOf: WaysOf
}): ConsoleRoute[] {
  const { normaliseRecipient, sealing, deliveryState, lastDay, waysOf } = deps

  async function home(view: View, asked = '', problem?: string) {
    const { words, operator, nowMs } = view
    const [delivery, day] = await Promise.all([
      deliveryState().catch(tooLate),
      lastDay(operator.apps, nowMs).catch(tooLate),
    ])
    const body = html`<h1>${words.nav.home}</h1>
${searchForm(view, { asked, problem })}
${todayView(view, { delivery, day })}`
    const status = problem === undefined ? 200 : 422
    // A refresh after a refused form would delete the typed text.
    const refresh = problem === undefined ? { refreshMs: 10_000 } : {}
    return { kind: 'page', title: words.nav.home, nav: 'home', body, status, ...refresh } as const
  }

  /** Undefined when the text is neither a mail address nor a phone number. */
  async function recipientIn(text: string, { operator }: View): Promise<LookedAt | undefined> {
    const found = channelsFor(text).flatMap((channel) => {
      const result = normaliseRecipient(channel, text)
      return result.kind === 'invalid' ? [] : [{ channel, to: result.to, apps: operator.apps }]
    })
    const [first] = found
    // Most persons call support about their latest message.
    const latest = first && (await waysOf(operator, first).catch(tooLate))?.[0]
    return found.find(({ channel }) => channel === latest) ?? first
  }

  return [
    { method: 'get', path: '/', run: ({ view }) => home(view) },
    // A reload after a refused form leads to the empty form.
    { method: 'get', path: '/search', run: async () => ({ kind: 'redirect', to: '/' }) },
    {
      method: 'post',
      path: '/search',
      async run({ view, form }: Visit) {
        const { search } = view.words
        const typed = (form.q ?? '').trim()
        const asked = typedRecipient(typed)
        if (isId(asked.toLowerCase())) {
          return { kind: 'redirect', to: `/notices/${asked.toLowerCase()}` }
        }
        const before = form.of === undefined ? undefined : sealing.open(form.of, view.operator)
        const recipient = asked === '' ? before : await recipientIn(asked, view)
        if (!recipient) return home(view, typed, search.unreadable)
        const { channel, to, apps } = recipient
        const typedIp = (form.ip ?? '').trim()
        const ip = limitableAddress(typedIp)
        if (typedIp !== '' && ip === undefined) return home(view, typed, search.badIp)
        const sealed = sealing.seal({ channel, to, ip, apps })
        return { kind: 'redirect', to: `/story/${sealed}` }
      },
    },
  ]
}

/** The search must work even if the figures take too long. */
function tooLate(error: unknown): undefined {
  if (!(error instanceof Unavailable)) throw error
}

/** Invisible characters (directions, joiners, breaks) that a copied text may contain. */
const unseen = /[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g
const dashes = /[\u2010-\u2015\u2212]/g

/**
 * Cleans a recipient that a person pasted from a mail, a chat, a spreadsheet or a contact. Only the console does so:
 * the API stays strict (src/recipient), because what a program sends is counted and paid for. Makes full-width
 * characters plain (NFKC) and removes wrappings. In a number, only digits, plus and dashes stay.
 */
export function typedRecipient(text: string): string {
  const plain = text.normalize('NFKC').replace(unseen, '').replace(dashes, '-').trim()
  const bare = /^<([^<>]*)>$/.exec(plain)?.[1] ?? plain
  const named = bare.replace(/^(tel|sms|mailto):/i, '').trim()
  return /^[[(]?[+\d][\d\s()[\].-]*$/.test(named) ? named.replace(/[\s()[\].]/g, '') : named
}
