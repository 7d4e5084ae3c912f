/**
 * What a page of the console is: a route that is given a visit (who, in which language, what was asked) and answers with
 * a body or sends the browser on. Sessions, tokens, headers and the frame around the body are console.ts's.
 */
import type { Html } from './html.ts'
import type { Language, Words } from './words.ts'

export interface Operator {
  keyId: string
  name: string
  /** Undefined: every app. */
  apps: readonly string[] | undefined
}

export interface View {
  words: Words
  language: Language
  operator: Operator
  /** Belongs into every form that posts. */
  csrf: string
  /** PostgreSQL's. */
  nowMs: number
}

/** Values that came twice are taken once. */
export type Given = Readonly<Record<string, string | undefined>>

export interface Visit {
  view: View
  params: Given
  query: Given
  form: Given
}

export type NavName = keyof Words['nav']

export type Outcome =
  | {
      kind: 'page'
      title: string
      body: Html
      nav?: NavName
      status?: number
      /** How often the page asks for itself; it does not, when absent. */
      refreshMs?: number
    }
  | { kind: 'redirect'; to: string }
  | { kind: 'notFound' }

export interface ConsoleRoute {
  method: 'get' | 'post'
  path: string
  /** Throws Unavailable. */
  run(visit: Visit): Promise<Outcome>
}
