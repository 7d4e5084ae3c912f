/** One provider's hours as bars in plain SVG: sent above the line, failed or expired below it. */

import { type Html, html } from '../base/html.ts'
import { fill } from '../base/words.ts'
import type { ProviderCounts } from '../notice/hour-counts.ts'
import type { View } from './page.ts'
import { time } from './parts.ts'

export interface ProviderHour extends ProviderCounts {
  /** The beginning of the hour. */
  atMs: number
}

const barWidth = 10
const gap = 2
const above = 40
const below = 20

export function chart(
  view: View,
  provider: string,
  own: readonly ProviderHour[],
  /** The beginnings of all hours of the chart, oldest first. */
  hours: readonly number[],
): Html {
  const { words, language } = view
  const { today } = words
  const ofHour = (sent: number, failed: number) => fill(today.ofHour, language, { sent, failed })
  const most = (name: 'sent' | 'failed') => Math.max(...own.map((one) => one[name]))
  // Both halves have one scale, so that ten failures are as long as ten successes.
  const scale = Math.min(above / most('sent'), below / most('failed'))
  const total = (name: 'sent' | 'failed') => own.reduce((all, one) => all + one[name], 0)
  const bars = own.map(({ atMs, sent, failed }) => {
    const x = hours.indexOf(atMs) * barWidth + gap / 2
    const hour = new Date(atMs).toISOString().slice(0, 16).replace('T', ' ')
    const bar = (name: string, count: number, isAbove: boolean) => {
      const height = count === 0 ? 0 : Math.max(1, Math.round(count * scale))
      const y = isAbove ? above - height : above + 1
      return html`<rect class="${name}" x="${x}" y="${y}" width="${barWidth - gap}" height="${height}"/>`
    }
    return html`<g><title>${hour} UTC: ${ofHour(sent, failed)}</title>
${bar('sent', sent, true)}${bar('failed', failed, false)}</g>`
  })
  const summary = ofHour(total('sent'), total('failed'))
  const width = hours.length * barWidth
  return html`<li><h3>${provider}</h3><p class="hint">${summary}</p>
<svg class="bars" viewBox="0 0 ${width} ${above + 1 + below}" preserveAspectRatio="none" role="img" aria-label="${provider}: ${summary}">
${bars}<path d="M0 ${above + 0.5}H${width}"/></svg>
<p class="hint axis">${time(new Date(hours[0] ?? 0))}<span>${today.now}</span></p></li>`
}
