import type { Finding } from './finding.ts'

const words = { ok: 'ok', warning: 'warning', error: 'ERROR' } as const

/** One line per finding, and below it what to do. */
export function reportOf(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ subject }) => subject.length))
  const lines = findings.flatMap(({ subject, state, message, advice }) => {
    const head = `${words[state].padEnd(7)}  ${subject.padEnd(width)}  `
    return [
      `${head}${message}`,
      ...(advice !== undefined && state !== 'ok' ? [`${' '.repeat(head.length)}→ ${advice}`] : []),
    ]
  })
  const count = (state: Finding['state']) =>
    findings.filter((finding) => finding.state === state).length
  const summary = `${count('ok')} ok, ${count('warning')} warnings, ${count('error')} errors`
  return [...lines, '', summary].join('\n')
}
