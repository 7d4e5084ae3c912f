/** Draws a panel of the dashboard as a picture: the series of its queries over time, as lines. */
import type { Series } from '../tools/prometheus.ts'

const [width, height, left, right, top, bottom] = [640, 220, 56, 12, 34, 52]
/** Colours that people who can't tell red from green can tell apart. */
const colors = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#56b4e9', '#e69f00']
const dashes = ['', '6 3', '2 3', '8 3 2 3', '', '6 3']

const units: Readonly<Record<string, (value: number) => string>> = {
  reqps: (value) => `${round(value)}/s`,
}

export function drawPanel(panel: {
  title: string
  unit: string
  lines: readonly { name: string; points: Series['points'] }[]
}): string {
  const points = panel.lines.flatMap((line) => line.points)
  const times = points.map(([atS]) => atS)
  const [fromS, toS] = [Math.min(...times), Math.max(...times)]
  const most = niceAbove(Math.max(...points.map(([, value]) => value)))
  const x = (atS: number) => left + ((atS - fromS) / (toS - fromS)) * (width - left - right)
  const y = (value: number) => height - bottom - (value / most) * (height - top - bottom)
  const text = (at: [number, number], words: string, more = '') =>
    `<text x="${round(at[0])}" y="${round(at[1])}" ${more}>${escaped(words)}</text>`

  const rows = [0, 0.5, 1].map((share) => {
    const at = y(share * most)
    const label = (units[panel.unit] ?? String)(share * most)
    return `<line x1="${left}" x2="${width - right}" y1="${at}" y2="${at}" stroke="#ddd"/>${text([left - 6, at + 4], label, 'text-anchor="end"')}`
  })
  const seconds = [0, 30, 60].filter((second) => fromS + second <= toS)
  const marks = seconds.map((second) =>
    text([x(fromS + second), height - bottom + 16], `${second} s`, 'text-anchor="middle"'),
  )
  const lines = panel.lines.map(({ points }, index) => {
    const path = points.map(([atS, value]) => `${round(x(atS))},${round(y(value))}`).join(' ')
    return `<polyline points="${path}" fill="none" stroke-width="2" stroke="${colors[index % 6]}" stroke-dasharray="${dashes[index % 6]}"/>`
  })
  const each = (width - left) / panel.lines.length
  const legend = panel.lines.map(({ name }, index) => {
    const at = left + index * each
    return `<line x1="${at}" x2="${at + 18}" y1="${height - 14}" y2="${height - 14}" stroke-width="2" stroke="${colors[index % 6]}" stroke-dasharray="${dashes[index % 6]}"/>${text([at + 24, height - 10], name)}`
  })
  const title = text([left, 20], panel.title, 'font-weight="bold" font-size="14"')
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" fill="#444" role="img"><title>${escaped(panel.title)}</title><rect width="100%" height="100%" fill="#fff"/>${[title, ...rows, ...marks, ...lines, ...legend].join('')}</svg>\n`
}

const round = (value: number) => Math.round(value * 10) / 10

/** A round number for the end of an axis. */
function niceAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value || 1))
  return power * ([1, 1.5, 2, 3, 4, 5, 6, 8].find((step) => step * power >= value) ?? 10)
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
