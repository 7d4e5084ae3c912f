import { orLate } from './deadline.ts'

/** One result of `npm run doctor`. `advice`: the operator's next step. */
export interface Finding {
  readonly subject: string
  readonly state: 'ok' | 'warning' | 'error'
  readonly message: string
  readonly advice?: string | undefined
}

export function about(subject: string) {
  const finding =
    (state: Finding['state']) =>
    (message: string, advice?: string): Finding => ({ subject, state, message, advice })
  return { ok: finding('ok'), warning: finding('warning'), error: finding('error') }
}

/** The findings of `work`, or one error if it throws or takes longer than `withinMs`. */
export async function findWithin(
  withinMs: number,
  subject: string,
  work: () => Promise<Finding[]>,
): Promise<Finding[]> {
  const { error } = about(subject)
  const late = `no answer within ${withinMs / 1_000} s`
  const advice = 'check that it runs and that this machine reaches it'
  try {
    return await orLate(work(), withinMs, () => [error(late, advice)])
  } catch (cause) {
    return [error((cause as Error).message)]
  }
}

const words = { ok: 'ok', warning: 'warning', error: 'ERROR' } as const

/** One line per finding, with the advice below it. */
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
