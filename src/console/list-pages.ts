/** The plain lists: rules in words, keys without their secrets, events that wait, what was done. */
import type { KeyFacts } from '../access/key-store.ts'
import type { Policies } from '../limiter/index.ts'
import type { EventOutbox } from '../notice/event-outbox.ts'
import { ownRulesOf, sentenceOf } from '../rules/explain.ts'
import type { Operations } from '../support/operations.ts'
import { type Html, html } from './html.ts'
import type { ConsoleRoute, NavName, Outcome, View } from './page.ts'
import { badge, csrfField, pager, table, time } from './parts.ts'
import { wordFor } from './words.ts'

const perPage = 50
const refreshMs = 15_000

export function listRoutes(deps: {
  /** The rules as they are now. */
  policies: () => Policies
  listKeys: () => Promise<KeyFacts[]>
  /** In the place of an app: an operator's key that sees all of them. */
  everyApp: string
  listEvents: EventOutbox['list']
  listOperations: Operations['list']
}): ConsoleRoute[] {
  const { policies, everyApp } = deps

  return [
    list('rules', async (view) => rules(view, policies())),

    list('keys', async (view) => {
      const { keys } = view.words
      const { apps } = view.operator
      const all = await deps.listKeys()
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
      return html`<p class="hint">${keys.note}</p>${table(view.words.nav.keys, heads, rows, keys.none)}
<section><h2>${keys.ownSessions}</h2><form method="post" action="/sign-out">${csrfField(view)}
<input type="hidden" name="everywhere" value="yes"><p class="hint">${keys.everywhereHint}</p>
<button>${keys.everywhere}</button></form></section>`
    }),

    list('events', async (view, cursor) => {
      const { waiting, nav } = view.words
      const after = cursor && { dueAt: cursor.at, id: cursor.id }
      const events = await deps.listEvents(view.operator.apps, perPage, after)
      const rows = events.map(({ type, app, createdAt, dueAt, tries }) => [
        type,
        app,
        time(createdAt),
        time(dueAt),
        tries,
      ])
      const heads = [waiting.type, view.words.keys.app, waiting.since, waiting.due, waiting.tries]
      const last = events.at(-1)
      return html`<p class="hint">${waiting.note}</p>${table(nav.events, heads, rows, waiting.none)}
${pages(view, 'events', cursor, events.length, last && { at: last.dueAt, id: last.id })}`
    }),

    list('operations', async (view, cursor) => {
      const { operations, nav, events } = view.words
      const done = await deps.listOperations(view.operator.apps, perPage, cursor)
      const rows = done.map(({ at, keyName, app, what, reason }) => [
        time(at),
        keyName ?? operations.unknownKey,
        app,
        what.map((one) => wordFor(events.operations, one)).join(', '),
        reason,
      ])
      const { when, who, what, reason } = operations
      const heads = [when, who, view.words.keys.app, what, reason]
      return html`<p class="hint">${operations.note}</p>${table(nav.operations, heads, rows, operations.none)}
${pages(view, 'operations', cursor, done.length, done.at(-1))}`
    }),
  ]
}

/** The last row of the page before: its time and, of several of one millisecond, its id. */
interface Cursor {
  at: Date
  id: string
}

function list(
  name: NavName,
  content: (view: View, cursor: Cursor | undefined) => Promise<Html>,
): ConsoleRoute {
  return {
    method: 'get',
    path: `/${name}`,
    async run({ view, query }): Promise<Outcome> {
      const title = view.words.nav[name]
      const body = html`<h1>${title}</h1>${await content(view, readCursor(query.cursor))}`
      return { kind: 'page', title, nav: name, body, refreshMs }
    },
  }
}

function readCursor(text = ''): Cursor | undefined {
  const [ms = '', id = '', ...rest] = text.split('.')
  const isCursor = /^\d{1,15}$/.test(ms) && isAnyId(id) && rest.length === 0
  return isCursor ? { at: new Date(Number(ms)), id } : undefined
}

/** Also a random one, which is not made of a time. */
const isAnyId = (id: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)

function pages(
  view: View,
  name: NavName,
  cursor: Cursor | undefined,
  count: number,
  last: Cursor | undefined,
): Html {
  const query = new URLSearchParams(cursor ? { cursor: '' } : {})
  const next = count === perPage && last ? `${last.at.getTime()}.${last.id}` : undefined
  return pager(view, `/${name}`, query, next)
}

function rules({ words }: View, policies: Policies): Html {
  const sections = ownRulesOf(policies).map(([policy, own]) => {
    const lines = own.map(
      (rule) => html`<dt>${rule.name}</dt><dd lang="en">${sentenceOf(rule)}</dd>`,
    )
    return html`<section><h2>${policy}</h2><p class="hint">${askedOf(words.rules, policy)}</p>
${lines.length > 0 ? html`<dl>${lines}</dl>` : html`<p class="quiet">${words.rules.none}</p>`}</section>`
  })
  return html`<p class="hint">${words.rules.note}</p>${sections}`
}

function askedOf({ asked, other }: View['words']['rules'], policy: string): string {
  return Object.hasOwn(asked, policy) ? asked[policy as keyof typeof asked] : other
}

function stateOfKey({ words: { keys } }: View, { revokedAt, isRevoked }: KeyFacts): Html {
  if (!revokedAt) return badge('good', 'check', keys.active)
  return isRevoked
    ? html`${badge('bad', 'cross', keys.revoked)} ${time(revokedAt)}`
    : html`${badge('wait', 'clock', keys.ends)} ${time(revokedAt)}`
}
