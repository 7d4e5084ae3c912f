import { isObject } from '../base/json.ts'
import type { FileProblem } from './located-yaml.ts'

/** Pages may name only workflows that exist. */
export function workflowProblems(raw: unknown): FileProblem[] {
  const { workflows, browser } = recordIn(raw)
  const known = Object.keys(recordIn(workflows))
  return listIn(recordIn(browser).workflows).flatMap((name, index) =>
    typeof name !== 'string' || known.includes(name)
      ? []
      : [{ path: ['browser', 'workflows', index], message: `there is no workflow "${name}"` }],
  )
}

const recordIn = (value: unknown): Readonly<Record<string, unknown>> =>
  isObject(value) ? value : {}
const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
