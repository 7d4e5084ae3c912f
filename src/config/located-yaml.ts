/**
 * A YAML file whose values keep their lines, so that any later problem is reported as `file:line`. `${NAME}` is
 * replaced from the environment here, because later checks need the final value.
 */
import { isMap, LineCounter, parseDocument, type Scalar, visit } from 'yaml'

export interface FileProblem {
  path: readonly (string | number)[]
  message: string
  /** The file and line, if it is another file. */
  place?: string | undefined
  isWarning?: boolean
}

export type LocatedYaml =
  | {
      ok: true
      value: unknown
      /** The problems so far; `report` adds to them. */
      problems: string[]
      warnings: string[]
      report(problem: FileProblem): void
    }
  | { ok: false; problems: string[] }

/** `path` names the file in messages. */
export function parseLocatedYaml(
  text: string,
  path: string,
  env: Readonly<Record<string, string | undefined>>,
): LocatedYaml {
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: true,
    merge: true,
  })
  const located = (line: number, message: string) => `${path}:${line}: ${message}`
  const lineAt = (offset: number) => lines.linePos(offset).line

  const problems = document.errors.map((error) => located(lineAt(error.pos[0]), error.message))
  // A file with a duplicate key is still readable; any other error is fatal.
  if (document.errors.some(({ code }) => code !== 'DUPLICATE_KEY')) return { ok: false, problems }

  const unset = new Set<string>()
  visit(document, {
    Scalar(_, node) {
      const report = (message: string) =>
        problems.push(located(lineAt(node.range?.[0] ?? 0), message))
      if (losesDigits(node)) report(`the number ${node.source} loses digits: write it in quotes`)
      if (typeof node.value !== 'string') return
      node.value = node.value.replace(
        /\$\{([A-Za-z_][A-Za-z0-9_]*\})?/g,
        (whole, inner?: string) => {
          if (inner === undefined) {
            // Its text would become the secret.
            report(`a variable is written \${NAME}, with letters, digits and _, and has no default`)
            return whole
          }
          const name = inner.slice(0, -1)
          // A secret that was made from a file ends with a line break.
          const value = env[name]?.trim()
          if (value) return value
          unset.add(whole)
          report(`${name} is not set in the environment`)
          return whole
        },
      )
    },
  })

  /** The line of the innermost part of `at` that is in the file. */
  const lineOf = (at: readonly (string | number)[]) => {
    let offset = document.contents?.range?.[0] ?? 0
    for (let depth = 1; depth <= at.length; depth++) {
      const parent = depth === 1 ? document.contents : document.getIn(at.slice(0, depth - 1), true)
      const pair = isMap(parent)
        ? parent.items.find((item) => String(item.key) === String(at[depth - 1]))
        : undefined
      const node = (pair?.key ?? document.getIn(at.slice(0, depth), true)) as
        | { range?: [number] }
        | undefined
      if (!node?.range) break
      offset = node.range[0]
    }
    return lineAt(offset)
  }
  const warnings: string[] = []
  const report = ({ path: at, message, place, isWarning }: FileProblem) => {
    const value = document.getIn(at)
    // The missing variable is already reported, and without it the value can't be checked.
    if (typeof value === 'string' && [...unset].some((name) => value.includes(name))) return
    const list = isWarning ? warnings : problems
    if (place) list.push(`${place}: ${message}`)
    else list.push(located(lineOf(at), at.length > 0 ? `${at.join('.')}: ${message}` : message))
  }

  try {
    return { ok: true, value: document.toJS(), problems, warnings, report }
  } catch (error) {
    // The file has an alias without an anchor, or nested aliases that would fill the memory.
    return { ok: false, problems: [...problems, `${path}: ${(error as Error).message}`] }
  }
}

/** A value that is compared as text, such as an id of a vendor, would be another one. */
const losesDigits = ({ value, source = '' }: Scalar) =>
  typeof value === 'number' && /^-?\d+$/.test(source) && String(value) !== source
