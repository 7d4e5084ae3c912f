/** Prints a replay in words and columns. */
import type { Change, Replayed, Row } from './replay.ts'

const shownRecipients = 10

export function reportOf(replayed: Replayed): string {
  const { requests, recipients, fromMs, toMs, rows, changes } = replayed
  if (requests === 0 || fromMs === undefined || toMs === undefined) {
    return `No requests were recorded in that time.${notes(replayed)}\n`
  }
  const span = `${timeOf(fromMs)} to ${timeOf(toMs)}`
  return [
    `${number(requests)} requests of ${number(recipients)} recipients, ${span}.${notes(replayed)}`,
    '',
    table([
      ['policy', 'rule', 'refused', 'challenged', 'admitted', 'observed'],
      ...rows.map(cellsOf),
    ]),
    '',
    ...(changes.length === 0
      ? ['No decision would change.']
      : [
          'Changed decisions, with the recipients that have most of these requests:',
          ...changes.map(changeLine),
        ]),
    '',
  ].join('\n')
}

function notes({ oneOf, missing }: Replayed): string {
  const absent = missing.map(
    (policy) => `\nRequests by ${policy} are left out: the file has no such policy.`,
  )
  if (oneOf === 1) return absent.join('')
  return (
    absent.join('') +
    `\nThis is a sample: 1 of ${number(oneOf)} recipients with all their requests, because there were too many to record. Rules that ` +
    'count several recipients together (by address, prefix, country, app) are underestimated.'
  )
}

function cellsOf({ policy, rule, was, now, observed }: Row): string[] {
  return [
    policy,
    rule ?? '(all)',
    arrow(was.refused, now.refused),
    arrow(was.asked, now.asked),
    rule === null ? arrow(was.admitted, now.admitted) : '',
    observed > 0 ? number(observed) : '',
  ]
}

function arrow(was: number, now: number): string {
  if (was === 0 && now === 0) return ''
  return was === now ? number(now) : `${number(was)} → ${number(now)}`
}

const words = {
  admitted: 'admitted',
  refused: 'refused',
  asked: 'challenged',
} as const

function changeLine({ policy, was, now, requests, recipients }: Change): string {
  const shown = recipients
    .slice(0, shownRecipients)
    .map(({ hash, requests: times }) => `${hash} (${number(times)})`)
  const more = recipients.length - shown.length
  return (
    `  ${policy}: ${number(requests)} ${words[was]} → ${words[now]}, of ${number(recipients.length)} recipients: ` +
    shown.join(', ') +
    (more > 0 ? ` and ${number(more)} more` : '')
  )
}

function table(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  )
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

const number = (value: number) => value.toLocaleString('en')
const timeOf = (ms: number) => new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
