/** The plain lists: rules in words, keys without secrets, waiting events, operations. */
import type { KeyFacts } from '../access/key-store.ts'
import { commandLine } from '../base/command-line.ts'
import { type Html, html } from '../base/html.ts'
import { everyApp } from '../base/names.ts'
import { fill } from '../base/words.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Policies } from '../limiter/index.ts'
import type { EventOutbox } from '../notice/event-outbox.ts'
import { ownRulesOf, sentenceOf } from '../rules/explain.ts'
import type { Operations } from '../support/operations.ts'
import type { ConsoleRoute, NavName, PageResult, View } from './page.ts'
import { badge, csrfField, pager, table, time, wordFor } from './parts.ts'

const perPage = 50
const refreshMs = 15_000

interface ListDeps {
  /** The policies now in force. */
  policies: () => Policies
  keys: { list(): Promise<KeyFacts[]> }
  events: Pick<EventOutbox, 'list'>
  operations: Pick<Operations, 'list'>
  secrets: Pick<Secrets, 'sealText' | 'unsealText'>
}

export function listRoutes(deps: ListDeps): ConsoleRoute[] {
  const { policies, secrets } = deps

  return [
    list('rules', secrets, async (view) => ({ shown: rules(view, policies()) })),

    list('keys', secrets, async (view) => {
      const { words, language } = view
      const { keys } = words
      const { apps } = view.operator
      const all = await deps.keys.list()
      const seen = apps ? all.filter(({ app }) => apps.includes(app)) : all
      const rows = seen.map((key) => [
        key.name,
        key.kind,
        key.app === everyApp ? keys.every : key.app,
        key.prefix && html`<code>${key.prefix}…</code>`,
        time(key.createdAt),
        key.lastUsedAt ? time(key.lastUsedAt) : keys.never,
        stateOfKey(view, key),
      ])
      const heads = [keys.name, keys.kind, keys.app, keys.prefix, keys.made, keys.used, keys.state]
      const note = fill(keys.note, language, { command: commandLine('keys') })
      const none = fill(keys.none, language, { command: commandLine('keys', 'create') })
      const shown = html`<p class="hint">${note}</p>${table(view, words.nav.keys, heads, rows, none)}
<section><h2>${keys.ownSessions}</h2><form method="post" action="/sign-out">${csrfField(view)}
<input type="hidden" name="everywhere" value="yes"><p class="hint">${keys.everywhereHint}</p>
<button>${keys.everywhere}</button></form></section>`
      return { shown }
    }),

    list('events', secrets, async (view, after) => {
      const { waiting, nav } = view.words
      const events = await deps.events.list(view.operator.apps, perPage, after)
      const rows = events.map(({ type, app, createdAt, dueAt, tries }) => [
        type,
        app,
        time(createdAt),
        time(dueAt),
        tries,
      ])
      const heads = [waiting.type, view.words.keys.app, waiting.since, waiting.due, waiting.tries]
      const last = events[perPage - 1]
      return {
        shown: html`<p class="hint">${waiting.note}</p>${table(view, nav.events, heads, rows, waiting.none)}`,
        last: last && { at: last.dueAt, id: last.id },
      }
    }),

    list('operations', secrets, async (view, after) => {
      const { operations, nav, events } = view.words
      const done = await deps.operations.list(view.operator.apps, perPage, after)
      const rows = done.map(({ at, keyName, app, what, reason }) => [
        time(at),
        keyName ?? operations.unknownKey,
        app,
        what.map((one) => wordFor(events.operations, one)).join(', '),
        reason,
      ])
      const { when, who, what, reason } = operations
      const heads = [when, who, view.words.keys.app, what, reason]
      return {
        shown: html`<p class="hint">${operations.note}</p>${table(view, nav.operations, heads, rows, operations.none)}`,
        last: done[perPage - 1],
      }
    }),
  ]
}

/** The last row of the previous page. The id decides between rows of one millisecond. */
interface Cursor {
  at: Date
  id: string
}

/** `last`: the cursor of the last row when the page is full; the next page begins after it. */
function list(
  name: NavName,
  secrets: ListDeps['secrets'],
  content: (
    view: View,
    after: Cursor | undefined,
  ) => Promise<{ shown: Html; last?: Cursor | undefined }>,
): ConsoleRoute {
  const context = `console ${name} cursor`
  return {
    method: 'get',
    path: `/${name}`,
    async run({ view, query }): Promise<PageResult> {
      const title = view.words.nav[name]
      const [ms, id] = secrets.unsealText(query.cursor ?? '', context)?.split(' ') ?? []
      const after = id === undefined ? undefined : { at: new Date(Number(ms)), id }
      const { shown, last } = await content(view, after)
      const next = last && secrets.sealText(`${last.at.getTime()} ${last.id}`, context)
      const search = new URLSearchParams(after ? { cursor: '' } : {})
      const body = html`<h1>${title}</h1>${shown}${pager(view, `/${name}`, search, next)}`
      return { kind: 'page', title, nav: name, body, refreshMs }
    },
  }
}

function rules(view: View, policies: Policies): Html {
  const { words, language } = view
  const sections = ownRulesOf(policies).map(([policy, own]) => {
    const rows = own.map((rule) => [rule.name, sentenceOf(rule, policies, language)])
    const heads = [words.today.rule, words.rules.meaning]
    return html`<section><h2>${policy}</h2><p class="hint">${askedOf(words.rules, policy)}</p>
${table(view, policy, heads, rows, words.rules.none)}</section>`
  })
  const note = fill(words.rules.note, language, { command: commandLine('policy', 'explain') })
  return html`<p class="hint">${note}</p>${sections}`
}

function askedOf({ asked, otherPolicy }: View['words']['rules'], policy: string): string {
  return Object.hasOwn(asked, policy) ? asked[policy as keyof typeof asked] : otherPolicy
}

function stateOfKey({ words: { keys } }: View, { revokedAt, isRevoked }: KeyFacts): Html {
  if (!revokedAt) return badge('good', 'check', keys.active)
  return isRevoked
    ? html`${badge('bad', 'cross', keys.revoked)} ${time(revokedAt)}`
    : html`${badge('wait', 'clock', keys.ends)} ${time(revokedAt)}`
}
