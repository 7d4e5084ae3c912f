/**
 * Draws the timelines of docs/guides/rule-kinds.md from the real limiter's decisions: `npx node docs/limiter-timelines.ts`.
 * One dot per request of the same subject: filled when admitted, open when refused.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createLimiter, type RawPolicies } from '../src/limiter/index.ts'

const everyTenS = Array.from({ length: 16 }, (_, index) => index * 10)
/** One request, and then a crowd shortly before its window ends: where sliding and fixed differ. */
const lateStart = everyTenS.filter((second) => second === 0 || second >= 40)

const drawings: Record<
  string,
  { rule: RawPolicies[string][number]; at: readonly number[]; marks: number[] }
> = {
  sliding: { rule: { name: 'r', key: '{u}', sliding: '3 per 60s' }, at: lateStart, marks: [] },
  fixed: { rule: { name: 'r', key: '{u}', fixed: '3 per 60s' }, at: lateStart, marks: [60, 120] },
  bucket: {
    rule: { name: 'r', key: '{u}', bucket: { rate: '3 per 60s', burst: 3 } },
    at: everyTenS,
    marks: [],
  },
  calendar: {
    rule: { name: 'r', key: '{u}', calendar: { limit: 3, cron: '* * * * *', timezone: 'UTC' } },
    at: everyTenS,
    marks: [40, 100],
  },
  lockout: {
    rule: { name: 'r', key: '{u}', lockout: { limit: 3, window: '60s', lock: '70s' } },
    at: everyTenS,
    marks: [],
  },
}
const [lengthS, widthPx, leftPx] = [150, 640, 20]
const startMs = Date.UTC(2026, 0, 1, 0, 0, 20)
const x = (seconds: number) => leftPx + (seconds / lengthS) * (widthPx - 2 * leftPx)

mkdirSync(new URL('./images/', import.meta.url), { recursive: true })
for (const [kind, { rule, at, marks }] of Object.entries(drawings)) {
  let nowMs = startMs
  const limiter = createLimiter({ policies: { p: [rule] }, clock: () => nowMs })
  const dots: string[] = []
  for (const second of at) {
    nowMs = startMs + second * 1_000
    const { admitted } = limiter.tryAcquire('p', { u: 1 })
    const fill = admitted ? '#2a7' : 'none'
    dots.push(
      `<circle cx="${x(second)}" cy="30" r="7" fill="${fill}" stroke="${admitted ? '#2a7' : '#c33'}" stroke-width="2"/>`,
    )
  }
  const lines = marks.map(
    (at) =>
      `<line x1="${x(at)}" y1="12" x2="${x(at)}" y2="48" stroke="#888" stroke-dasharray="3"/>`,
  )
  const labels = [0, 60, 120].map(
    (at) =>
      `<text x="${x(at)}" y="66" font-size="12" text-anchor="middle" fill="#888">${at} s</text>`,
  )
  const axis = `<line x1="${x(0)}" y1="30" x2="${x(lengthS)}" y2="30" stroke="#bbb"/>`
  const label = `Requests against a ${kind} rule: filled dots are admitted, open ones refused`
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${widthPx}" height="72" font-family="sans-serif" role="img" aria-label="${label}"><title>${label}</title><rect width="100%" height="100%" fill="#fff"/>${[axis, ...lines, ...dots, ...labels].join('')}</svg>\n`
  writeFileSync(new URL(`./images/limiter-${kind}.svg`, import.meta.url), svg)
}
