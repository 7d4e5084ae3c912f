/** Two tables of the delivery page, by country: the codes that people typed, and the messages that carriers rejected. */
import { type Html, html } from '../base/html.ts'
import { fill } from '../base/words.ts'
import type { Browse } from '../notice/browse.ts'
import { channelFacts, isChannel } from '../recipient/channels.ts'
import type { View } from './page.ts'
import { table } from './parts.ts'

type Typed = Awaited<ReturnType<Browse['latestTyped']>>[number]
type Taken = Awaited<ReturnType<Browse['latestTaken']>>[number]

/** The rules of a country by which a carrier may reject a message, in English. */
export type RejectingRules = (country: string) => readonly { words: string; source: string }[]

const maxRules = 6

/** The share of the codes that people typed, by provider and country. */
export function typedByProvider(view: View, typed: readonly Typed[]): Html {
  const { delivery, notices } = view.words
  const groups = [...Map.groupBy(typed, (one) => `${one.provider} ${countryOf(one)}`).values()]
  const rows = groups
    .map((all) => ({ all, some: all.filter(({ isPassed }) => isPassed).length }))
    .sort((a, b) => b.all.length - a.all.length)
    .map(({ all, some }) => {
      const [first] = all as [Typed]
      const share = fill(delivery.typedOf, view.language, { some, n: all.length })
      return [first.provider, nameOf(view, countryOf(first)), share]
    })
  const heads = [notices.provider, delivery.country, delivery.typed]
  return html`<section><h2>${delivery.typedByProvider}</h2>
<p class="hint">${delivery.typedNote}</p>${table(view, delivery.typedByProvider, heads, rows, delivery.noneTyped)}</section>`
}

/** The countries whose carriers reject messages, each with the rules that may explain it. The rules are about SMS only. */
export function rejectedByCountry(
  view: View,
  taken: readonly Taken[],
  rejectingRules: RejectingRules,
): Html | undefined {
  // Reading the countries of a thousand numbers takes up to 15 ms.
  if (!taken.some(({ isRejected }) => isRejected)) return undefined
  const sms = taken.filter(({ channel }) => isChannel(channel) && channelFacts(channel).isSms)
  const byCountry = Map.groupBy(sms, countryOf)
  byCountry.delete('')
  const counts = [...byCountry].map(([country, all]) => ({
    country,
    n: all.length,
    some: all.filter(({ isRejected }) => isRejected).length,
  }))
  const rejecting = counts.filter(({ some }) => some > 0).sort((a, b) => b.some - a.some)
  if (rejecting.length === 0) return undefined
  const { delivery } = view.words
  const rows = rejecting.map(({ country, n, some }) => [
    nameOf(view, country),
    fill(delivery.rejectedOf, view.language, { some, n }),
    rulesList(rejectingRules(country), delivery.noRules),
  ])
  const heads = [delivery.country, delivery.rejected, delivery.rulesOfCountry]
  return html`<section><h2>${delivery.rejectedByCountry}</h2>${table(view, delivery.rejectedByCountry, heads, rows, '')}</section>`
}

/** Empty for mail. */
const countryOf = ({ channel, recipient }: Typed | Taken): string =>
  isChannel(channel) ? channelFacts(channel).address.placeOf(recipient).country : ''

const nameOf = ({ language }: View, country: string): string =>
  country === ''
    ? '–'
    : (new Intl.DisplayNames(language, { type: 'region' }).of(country) ?? country)

function rulesList(rules: ReturnType<RejectingRules>, none: string): Html {
  if (rules.length === 0) return html`<span class="quiet">${none}</span>`
  const shown = rules
    .slice(0, maxRules)
    .map(
      ({ words, source }) =>
        html`<li lang="en"><a href="${source}" rel="noreferrer">${words}</a></li>`,
    )
  return html`<ul>${shown}</ul>`
}
