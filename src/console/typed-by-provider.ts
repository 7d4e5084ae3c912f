/** The share of the codes that people typed, by provider and country. */
import { type Html, html } from '../base/html.ts'
import { fill } from '../base/words.ts'
import type { Browse } from '../notice/browse.ts'
import { addressKindOf, isChannel } from '../recipient/channels.ts'
import type { View } from './page.ts'
import { table } from './parts.ts'

type Typed = Awaited<ReturnType<Browse['latestTyped']>>[number]

export function typedByProvider(view: View, typed: readonly Typed[]): Html {
  const { language, words } = view
  const { delivery, notices } = words
  const names = new Intl.DisplayNames(language, { type: 'region' })
  const groups = [...Map.groupBy(typed, (one) => `${one.provider} ${countryOf(one)}`).values()]
  const rows = groups
    .map((all) => ({ all, some: all.filter(({ isPassed }) => isPassed).length }))
    .sort((a, b) => b.all.length - a.all.length)
    .map(({ all, some }) => {
      const [first] = all as [Typed]
      const country = countryOf(first)
      const place = country === '' ? '–' : (names.of(country) ?? country)
      return [first.provider, place, fill(delivery.typedOf, language, { some, n: all.length })]
    })
  const heads = [notices.provider, delivery.country, delivery.typed]
  return html`<section><h2>${delivery.typedByProvider}</h2>
<p class="hint">${delivery.typedNote}</p>${table(view, delivery.typedByProvider, heads, rows, delivery.noneTyped)}</section>`
}

/** Empty for mail. */
const countryOf = ({ channel, recipient }: Typed): string =>
  isChannel(channel) ? addressKindOf(channel).placeOf(recipient).country : ''
