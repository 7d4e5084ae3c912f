/** The countries whose carriers reject messages, each with the rules that may explain it. */
import { type Html, html } from '../base/html.ts'
import { fill } from '../base/words.ts'
import type { Browse } from '../notice/browse.ts'
import { channelFacts, isChannel } from '../recipient/channels.ts'
import type { View } from './page.ts'
import { table } from './parts.ts'

type Taken = Awaited<ReturnType<Browse['latestTaken']>>[number]

/** The rules of a country by which a carrier may reject a message, in English. */
export type RejectingRules = (country: string) => readonly { words: string; source: string }[]

const maxRules = 6

export function rejectedByCountry(
  view: View,
  taken: readonly Taken[],
  rejectingRules: RejectingRules,
): Html | undefined {
  // Reading the countries of a thousand numbers takes up to 15 ms.
  if (!taken.some(({ isRejected }) => isRejected)) return undefined
  const byCountry = Map.groupBy(taken, countryOf)
  byCountry.delete('')
  const counts = [...byCountry].map(([country, all]) => ({
    country,
    n: all.length,
    some: all.filter(({ isRejected }) => isRejected).length,
  }))
  const rejecting = counts.filter(({ some }) => some > 0).sort((a, b) => b.some - a.some)
  if (rejecting.length === 0) return undefined
  const { language, words } = view
  const { delivery } = words
  const names = new Intl.DisplayNames(language, { type: 'region' })
  const rows = rejecting.map(({ country, n, some }) => [
    names.of(country) ?? country,
    fill(delivery.rejectedOf, language, { some, n }),
    rulesList(rejectingRules(country), delivery.noRules),
  ])
  const heads = [delivery.country, delivery.rejected, delivery.rulesOfCountry]
  return html`<section><h2>${delivery.rejectedByCountry}</h2>${table(view, delivery.rejectedByCountry, heads, rows, '')}</section>`
}

/** Empty for messages that are no SMS: the rules are about SMS only. */
function countryOf({ channel, recipient }: Taken): string {
  if (!isChannel(channel)) return ''
  const { address, isSms } = channelFacts(channel)
  return isSms ? address.placeOf(recipient).country : ''
}

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
