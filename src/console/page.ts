/**
 * A page of the console is a route. It receives a visit (operator, language, form values) and returns a body or a
 * redirect. `console.ts` adds sessions, tokens, headers and the frame around the body.
 */
import type { Html } from '../base/html.ts'
import type { Language, Words } from '../base/words.ts'

export type ConsoleWords = Words['console']

export interface Operator {
  keyId: string
  name: string
  /** Undefined means every app. */
  apps: readonly string[] | undefined
}

export interface View {
  words: ConsoleWords
  language: Language
  operator: Operator
  /** Every form that posts must contain it. */
  csrf: string
  /** The clock of PostgreSQL. */
  nowMs: number
}

/** Values of a form by name. If a name was sent twice, the first value counts. */
export type Given = Readonly<Record<string, string | undefined>>

export interface Visit {
  view: View
  params: Given
  query: Given
  form: Given
}

export type NavName = keyof ConsoleWords['nav']

export interface Page {
  title: string
  body: Html
  nav?: NavName
  status?: number
  /** Interval at which the page refreshes itself. Without it, the page stays as it is. */
  refreshMs?: number
}

export type PageResult =
  | ({ kind: 'page' } & Page)
  | { kind: 'redirect'; to: string }
  | { kind: 'notFound' }

export interface ConsoleRoute {
  method: 'get' | 'post'
  path: string
  /** Throws Unavailable. */
  run(visit: Visit): Promise<PageResult>
}
