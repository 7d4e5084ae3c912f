/**
 * "Why did my code not come?": the story of one recipient. The page shows diagnoses, the message timeline and the current
 * state. Support can reset limits and see the full recipient. Both need a reason and are recorded first.
 */

import { channels } from '../base/channel.ts'
import { html } from '../base/html.ts'
import { isId } from '../base/ids.ts'
import { textProblem } from '../base/text-problem.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Browse } from '../notice/browse.ts'
import { addressKindOf, isChannel } from '../recipient/channels.ts'
import type { NormaliseRecipient } from '../recipient/normalise-recipient.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import type { DecisionLog } from '../support/decision-log.ts'
import { type Operations, type Resettable, resettable } from '../support/operations.ts'
import type { LookUp, Reset } from '../support/support.ts'
import { diagnose } from './diagnose.ts'
import { type LookedAt, revealedForMs, type Sealing, type WaysOf } from './looked-at.ts'
import type { ConsoleRoute, Given, PageResult, View } from './page.ts'
import { masked } from './parts.ts'
import { storyView } from './story-view.ts'
import { timeline } from './timeline.ts'

/** The app of `BOOTSTRAP_SECRET_KEY`, used while no key exists. */
const firstApp = 'default'
const maxReasonLength = 500
const refreshMs = 5_000
const notFound: PageResult = { kind: 'notFound' }

export function storyRoutes(deps: {
  lookUp: LookUp
  reset: Reset
  operations: Operations
  decisions: Pick<DecisionLog, 'appsOf'>
  notices: Pick<Browse, 'findOfApps' | 'appsOf'>
  secrets: Pick<Secrets, 'recipientHash' | 'recipientHashes'>
  normaliseRecipient: NormaliseRecipient
  isTestRecipient: TestRecipients['isTestRecipient']
  /** Every app that the product knows of. An app without an API key sends by a façade, or in process. */
  allApps: () => Promise<string[]>
  sealing: Sealing
  waysOf: WaysOf
}): ConsoleRoute[] {
  const { lookUp, reset, operations, decisions, notices, secrets, sealing } = deps

  /** The apps of the operator. Apps with entries for this recipient come first. */
  async function appsFor(view: View, { channel, to }: LookedAt): Promise<string[]> {
    const hashes = secrets.recipientHashes(channel, to)
    const sentBy = await notices.appsOf(hashes)
    const apps = view.operator.apps ?? [...new Set([...sentBy, ...(await deps.allApps())])]
    if (apps.length === 0) return [firstApp]
    if (apps.length === 1) return [...apps]
    const known = [...sentBy, ...(await decisions.appsOf(hashes, apps))]
    const knowing = known.filter((app) => apps.includes(app))
    return [...new Set([...knowing, ...apps])]
  }

  /** The recipient in the sealed address, and the selected app. */
  async function find(view: View, sealed = '', wanted?: string) {
    const lookedAt = sealing.open(sealed, view.operator)
    if (!lookedAt) return undefined
    const apps = await appsFor(view, lookedAt)
    const app = wanted ?? apps[0]
    if (app === undefined || !apps.includes(app)) return undefined
    const { channel, to, ip } = lookedAt
    const result = deps.normaliseRecipient(channel, to)
    const country = result.kind === 'invalid' ? '' : result.country
    const destination = result.kind === 'not_allowed' ? result.because : ('allowed' as const)
    return { lookedAt, apps, app, destination, asked: { app, channel, to, country, ip } }
  }

  /** For resets and reveals: uses only the app that the form names, never a default. */
  const findNamed = async (view: View, sealed: string, { app }: Given) =>
    app === undefined ? undefined : find(view, sealed, app)

  async function show(
    view: View,
    sealed: string,
    query: Given,
    problem?: string,
  ): Promise<PageResult> {
    const found = await find(view, sealed, query.app)
    if (!found) return notFound
    const { lookedAt, apps, app, destination, asked } = found
    const [story, used] = await Promise.all([lookUp(asked), deps.waysOf(view.operator, lookedAt)])
    const ways = channels
      .filter((channel) => channel === lookedAt.channel || used.includes(channel))
      .map((channel) => ({ channel, sealed: sealing.seal({ ...lookedAt, channel }) }))
    const isTestRecipient = deps.isTestRecipient(lookedAt.to)
    const diagnoses = diagnose({ ...story, destination, isTestRecipient }, view.nowMs)
    const { revealed } = lookedAt
    const isRevealed = revealed?.keyId === view.operator.keyId && revealed.untilMs > view.nowMs
    const shown = { sealed, lookedAt, ways, apps, app, story, diagnoses, isRevealed, problem }
    return {
      kind: 'page',
      title: masked(view, lookedAt.channel, lookedAt.to),
      nav: 'home',
      body: storyView(view, { ...shown, isDone: query.done === '1', marked: query.notice }),
      ...(problem === undefined ? { refreshMs } : { status: 422 }),
    }
  }

  /** Why a reason is refused. The record is kept longer than the recipient, so the reason must not contain it. */
  function problemOf(view: View, reason: string, { channel, to }: LookedAt): string | undefined {
    const { story } = view.words
    const isLine = reason !== '' && reason.length <= maxReasonLength && !textProblem(reason)
    if (!isLine) return story.badReason
    return addressKindOf(channel).isNamedIn(reason, [to]) ? story.namedReason : undefined
  }

  return [
    {
      method: 'get',
      path: '/notices/:id',
      async run({ view, params: { id = '' } }) {
        const notice = isId(id) ? await notices.findOfApps(view.operator.apps, id) : null
        if (!notice) return notFound
        const { channel, recipient, app } = notice
        if (recipient !== null && isChannel(channel)) {
          const query = new URLSearchParams({ app, notice: id })
          return {
            kind: 'redirect',
            to: `/story/${sealing.seal({ channel, to: recipient, apps: [app] })}?${query}`,
          }
        }
        const alone = { notices: [notice], refusals: [], checks: [], operations: [] }
        const { words } = view
        const body = html`<h1>${words.story.timeline}</h1><p class="note">${words.story.erased}</p>
${timeline(view, alone, id)}`
        return { kind: 'page', title: words.story.timeline, nav: 'notices', body }
      },
    },
    {
      method: 'get',
      path: '/story/:sealed',
      run: ({ view, params: { sealed = '' }, query }) => show(view, sealed, query),
    },
    {
      method: 'post',
      path: '/story/:sealed/reset',
      async run({ view, params: { sealed = '' }, form }) {
        const found = await findNamed(view, sealed, form)
        if (!found) return notFound
        const what: Resettable[] = resettable.filter((one) => form[one] !== undefined)
        const reason = (form.reason ?? '').trim()
        const problem =
          what.length === 0 ? view.words.story.noChoice : problemOf(view, reason, found.lookedAt)
        if (problem) return show(view, sealed, { app: found.app }, problem)
        await reset({ ...found.asked, what, reason, keyId: view.operator.keyId })
        const query = new URLSearchParams({ app: found.app, done: '1' })
        return { kind: 'redirect', to: `/story/${sealed}?${query}` }
      },
    },
    {
      method: 'post',
      path: '/story/:sealed/reveal',
      async run({ view, params: { sealed = '' }, form }) {
        const found = await findNamed(view, sealed, form)
        if (!found) return notFound
        const { lookedAt, app } = found
        const reason = (form.reason ?? '').trim()
        const problem = problemOf(view, reason, lookedAt)
        if (problem) return show(view, sealed, { app }, problem)
        const { keyId } = view.operator
        const hash = secrets.recipientHash(lookedAt.channel, lookedAt.to)
        await operations.record(app, hash, { keyId, what: ['reveal'], reason })
        const revealed = { keyId, untilMs: view.nowMs + revealedForMs }
        const query = new URLSearchParams({ app })
        return {
          kind: 'redirect',
          to: `/story/${sealing.seal({ ...lookedAt, revealed })}?${query}`,
        }
      },
    },
    // A reload after a refused form leads to the story.
    ...['reset', 'reveal'].map(
      (name): ConsoleRoute => ({
        method: 'get',
        path: `/story/:sealed/${name}`,
        run: async ({ params: { sealed = '' } }) => ({
          kind: 'redirect',
          to: `/story/${encodeURIComponent(sealed)}`,
        }),
      }),
    ),
  ]
}
