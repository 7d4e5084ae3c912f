/** The first page: one field for a number, an address or a notice id, and whether the trouble is everybody's. */
import { isId } from '../base/ids.ts'
import { limitableAddress } from '../base/limitable-address.ts'
import type { NormaliseRecipient } from '../recipient/normalise-recipient.ts'
import { type DeliveryState, delays } from './delivery-page.ts'
import { html } from './html.ts'
import type { LookedAt, Sealing } from './looked-at.ts'
import type { ConsoleRoute, View, Visit } from './page.ts'
import { searchForm } from './search-form.ts'
import { typedRecipient } from './typed-recipient.ts'

export function searchRoutes(deps: {
  normaliseRecipient: NormaliseRecipient
  sealing: Sealing
  delivery: DeliveryState
}): ConsoleRoute[] {
  const { normaliseRecipient, sealing, delivery } = deps

  async function home(view: View, asked = '', problem?: string) {
    const { words } = view
    const body = html`<h1>${words.nav.home}</h1>
${searchForm(view, { asked, problem })}
<section><h2>${words.search.overview}</h2>${delays(view, await delivery())}</section>`
    const status = problem === undefined ? 200 : 422
    // What was typed must not be lost by a refresh of the answer to a form.
    const refresh = problem === undefined ? { refreshMs: 10_000 } : {}
    return { kind: 'page', title: words.nav.home, nav: 'home', body, status, ...refresh } as const
  }

  /** An address or a number; undefined when it is neither. */
  function recipientIn(text: string, { operator }: View): LookedAt | undefined {
    const channel = text.includes('@') ? 'email' : 'sms'
    const result = normaliseRecipient(channel, text)
    return result.kind === 'invalid' ? undefined : { channel, to: result.to, apps: operator.apps }
  }

  return [
    { method: 'get', path: '/', run: ({ view }) => home(view) },
    // Where a form with a mistake was shown: a browser that asks again finds the empty one.
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
        const recipient = asked === '' ? before : recipientIn(asked, view)
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
