/**
 * The promises that every provider kind keeps, with any protocol. `npm test` tests Postern's kinds, and `npm run
 * conformance -- ./file.js` tests others. A kind has a far end that behaves like the vendor: it checks signatures and
 * answers in the vendor's forms. The suite can make it misbehave. Nothing here needs vitest, so the command needs only
 * Node.
 */
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { orLate } from '../../src/base/deadline.ts'
import { newId } from '../../src/base/ids.ts'
import { readResult } from '../../src/delivery/read-result.ts'
import { createProvider } from '../../src/providers/kinds.ts'
import type { Message, Provider, SendResult } from '../../src/providers/provider.ts'
import type { ProviderDeps, ProviderKind } from '../../src/providers/provider-kind.ts'
import { eventually } from '../tools/wait.ts'
import type { FarEndTools } from './far-ends/http.ts'

export type Behaviour =
  | 'accept'
  | 'reject'
  | 'invalid_recipient'
  | 'throttle'
  /** The protocol's own "not now" for this one recipient: a 450 to RCPT, a limit on one number (I30). */
  | 'postpone'
  /** A clear "not now" of the far end: 5xx or the protocol's own answer for it (F14). */
  | 'unavailable'
  /** A failure inside a successful answer: HTTP 200, or a good connection and a bad body (F16). */
  | 'error_inside'
  /** Connects and never answers (F15). */
  | 'hang'
  /** Breaks the connection before it has read anything (F14). */
  | 'refuse_talk'
  /** Breaks the connection in the middle of its answer (F14). */
  | 'reset_mid_answer'
  /** Accepts the message, then breaks the connection instead of answering (F18). */
  | 'lose_answer'
  /** Answers with meaningless bytes. */
  | 'babble'

export interface FarEnd {
  /** Resolves when every connection has the behaviour. */
  behave(behaviour: Behaviour): Promise<void>
  /** The accepted messages, by the reference that it got. */
  readonly taken: readonly { readonly reference: string; readonly to: string }[]
  /** Faults of the provider's requests: a wrong signature, a missing header. Empty if there is none. */
  readonly complaints: readonly string[]
  /** Connections open now. */
  openConnections(): number
  close(): Promise<void>
}

/** The case of a kind, exported as `conformance` beside the kind. */
export interface Conformance {
  startFarEnd(tools: FarEndTools): Promise<FarEnd & { port: number }>
  /** The policy-file entry for a far end on this loopback port. */
  settings(port: number): Record<string, unknown>
  /** Texts that must never be in a result: keys, passwords, tokens. */
  readonly secrets: readonly string[]
  readonly message: Omit<Message, 'noticeId'>
  /** The result of each behaviour. A behaviour that the protocol can't show is left out. */
  readonly expected: Partial<
    Record<Behaviour, SendResult['kind'] | readonly SendResult['kind'][]>
  > & {
    /**
     * Never `throttled` or `unavailable`, because those delay all messages. Left out if the vendor has no answer for
     * it.
     */
    readonly postpone?: 'postponed'
  }
  readonly deps?: Partial<ProviderDeps>
  /** False if the protocol has no place for Postern's reference. The page of the kind mentions it. */
  readonly carriesReference?: boolean
}

/** The results of a kind over HTTP whose vendor has an answer for every refusal. */
export const expectedOverHttp = {
  accept: 'accepted',
  reject: 'rejected',
  invalid_recipient: 'invalid_recipient',
  throttle: 'throttled',
  postpone: 'postponed',
  unavailable: 'unavailable',
  error_inside: 'unavailable',
  hang: 'unknown',
  refuse_talk: 'unknown',
  reset_mid_answer: 'unknown',
  lose_answer: 'unknown',
  babble: 'unknown',
} as const satisfies Conformance['expected']

/** The message of a case whose vendor asks for nothing special. */
export const codeBySms = {
  ...{ channel: 'sms', to: '+447700900123', template: 'captcha', locale: 'en' },
  ...{ variables: { code: '738291' }, text: 'Your number is 738291.' },
} as const satisfies Conformance['message']

/** A file with a kind: one of `cases`, or a plugin's. */
export interface ConformanceCase {
  // biome-ignore lint/suspicious/noExplicitAny: settings are the kind's own affair
  readonly default: ProviderKind<any>
  readonly conformance: Conformance
}

/** A provider of a kind and its far end, until `run` ends. */
export async function withProvider<
  End extends { port: number; close(): Promise<void> },
  Value = void,
>(
  {
    default: kind,
    conformance: { settings, startFarEnd },
  }: Pick<ConformanceCase, 'default'> & {
    conformance: Pick<Conformance, 'settings'> & { startFarEnd(): Promise<End> }
  },
  run: (provider: Provider, farEnd: End) => Promise<Value>,
): Promise<Value> {
  const farEnd = await startFarEnd()
  const deps = { timeoutMs: 60_000, concurrency: 100, clock: Date.now }
  const provider = kind.create(kind.kind, kind.settings.parse(settings(farEnd.port)), deps)
  try {
    return await run(provider, farEnd)
  } finally {
    await provider.close()
    await farEnd.close()
  }
}

/** Short if the promise waits for it. Otherwise long enough for every handshake. */
export const shortMs = 1_000
/** A broken connection is noticed at once, without waiting. */
const noticedWithinMs = 15_000
const concurrent = 50

const faultNumbers: Partial<Record<Behaviour, string>> = {
  unavailable: 'F14',
  refuse_talk: 'F14',
  reset_mid_answer: 'F14',
  hang: 'F15',
  error_inside: 'F16',
  throttle: 'F17',
  lose_answer: 'F18',
}

/** The message without the text that Node's assertions add. */
function same(seen: unknown, expected: unknown, otherwise: string): void {
  assert.ok(isDeepStrictEqual(seen, expected), otherwise)
}

export interface ProviderPromise {
  readonly says: string
  /** Rejects with an Error that names the broken promise in plain words. */
  keep(): Promise<void>
}

export type Suite = ReturnType<typeof createSuite>

/** The promises of one kind, in the order in which they are tested. */
export function createSuite(
  { default: kind, conformance: given }: ConformanceCase,
  tools: FarEndTools,
  /** All results so far. */
  results: SendResult[] = [],
) {
  const { message, expected } = given
  const never = new AbortController().signal
  const startFarEnd = () => given.startFarEnd(tools)
  let farEnd: FarEnd & { port: number }
  let provider: Provider

  function create(port: number, timeoutMs = 30_000): Provider {
    const settings = kind.settings.parse(given.settings(port))
    const deps = { timeoutMs, concurrency: 100, clock: Date.now, ...given.deps }
    return createProvider('under-test', { kind, settings }, deps)
  }

  async function send(to = provider, signal = never, noticeId = newId()) {
    const sending = (async () => to.send({ ...message, noticeId }, signal))()
    const result = await sending.catch((error: unknown) =>
      assert.fail(`send threw (${error}); whatever the far end does, a send ends with a result`),
    )
    assert.ok(
      result && isDeepStrictEqual(result, readResult(result, { to: '' })),
      `send answered ${JSON.stringify(result)}, which is none of the results, or has a detail or an id that cannot be kept`,
    )
    results.push(result)
    return { result, noticeId }
  }

  const took = (from: number) => farEnd.taken.slice(from)
  const isOneOf = (result: SendResult, kinds: string | readonly string[] = [], when: string) =>
    assert.ok(
      [kinds].flat().includes(result.kind),
      `${when}, the result was ${JSON.stringify(result)} and not ${[kinds].flat().join(' or ')}`,
    )
  const endsWithin = (startedAt: number, withinMs: number, what: string) => {
    const tookMs = Math.round(performance.now() - startedAt)
    assert.ok(tookMs < withinMs, `${what} took ${tookMs} ms, and ${withinMs} ms is the bound`)
  }

  const answersTo = ([behaviour, kinds]: [Behaviour, string | readonly string[]]) => ({
    says: `answers ${[kinds].flat().join(' or ')} when the far end does: ${behaviour}${
      behaviour === 'hang' ? ', at its own time limit' : ''
    }${faultNumbers[behaviour] ? ` (${faultNumbers[behaviour]})` : ''}`,
    async keep() {
      await farEnd.behave(behaviour)
      const before = farEnd.taken.length
      const hasty = behaviour === 'hang' ? create(farEnd.port, shortMs) : undefined
      const startedAt = performance.now()
      const { result, noticeId } = await send(hasty ?? provider)
      await hasty?.close()
      endsWithin(startedAt, hasty ? shortMs + 5_000 : noticedWithinMs, 'the send')
      isOneOf(result, kinds, `when the far end did ${behaviour}`)
      if (result.kind === 'throttled') {
        assert.ok(result.retryAfterMs > 0, 'throttled says no time after which to come again')
      }
      if (result.kind === 'accepted' || behaviour === 'lose_answer') {
        const recipients = took(before).map(({ to }) => to)
        same(recipients, [message.to], 'the far end did not take one message to `to`')
        if (given.carriesReference !== false) {
          const reference = farEnd.taken.at(-1)?.reference
          same(reference, noticeId, 'the far end did not see the notice id as reference')
        }
      } else if (result.kind !== 'unknown') {
        const count = took(before).length
        same(count, 0, `${result.kind} says "not taken", and the far end had taken it`)
      }
    },
  })

  const promises: ProviderPromise[] = [
    {
      says: 'carries the channel of its message',
      async keep() {
        same(provider.kind, kind.kind, 'the provider names another kind')
        assert.ok(kind.channels.includes(message.channel), `channels lacks ${message.channel}`)
      },
    },
    {
      says: 'refuses unknown keys in its settings',
      async keep() {
        const entry = { ...given.settings(1), colour: 'blue' }
        const { success } = kind.settings.safeParse(entry)
        assert.ok(!success, 'settings took the unknown key "colour"; use z.strictObject')
      },
    },
    {
      says: 'calls an answer about one recipient postponed, which keeps no other message back (I30)',
      async keep() {
        const said = expected.postpone
        assert.ok(
          said === undefined || said === 'postponed',
          `expected.postpone is ${said}; that would keep the messages of all others back`,
        )
      },
    },
    ...(Object.entries(expected) as [Behaviour, string][]).map(answersTo),
    {
      says: 'sends the same reference again when a notice is retried (I8)',
      async keep() {
        if (given.carriesReference === false) return
        const before = farEnd.taken.length
        const { noticeId } = await send()
        await send(provider, never, noticeId)
        const references = took(before).map(({ reference }) => reference)
        same(references, [noticeId, noticeId], 'the references differ')
      },
    },
    {
      says: 'gives up at the signal, not at its own time limit, when the far end hangs (F15)',
      async keep() {
        await farEnd.behave('hang')
        const patient = create(farEnd.port)
        const controller = new AbortController()
        const startedAt = performance.now()
        setTimeout(() => controller.abort(), shortMs)
        const { result } = await send(patient, controller.signal)
        assert.ok(controller.signal.aborted, 'the send ended before the signal')
        endsWithin(startedAt, noticedWithinMs, 'the send')
        isOneOf(result, expected.hang, 'when the signal came')
        await patient.close()
      },
    },
    {
      says: 'sends nothing when the signal has been aborted before',
      async keep() {
        const before = farEnd.taken.length
        const { result } = await send(provider, AbortSignal.abort())
        isOneOf(result, 'unavailable', 'when the signal had come before')
        same(took(before).length, 0, 'the far end took a message')
      },
    },
    {
      says: 'answers unavailable when nobody listens',
      async keep() {
        const other = await startFarEnd()
        await other.close()
        const lonely = create(other.port)
        isOneOf((await send(lonely)).result, 'unavailable', 'when nobody listened')
        await lonely.close()
      },
    },
    {
      says: `keeps ${concurrent} concurrent messages apart`,
      async keep() {
        const before = farEnd.taken.length
        const patient = create(farEnd.port)
        const sent = await Promise.all(Array.from({ length: concurrent }, () => send(patient)))
        for (const { result } of sent) isOneOf(result, 'accepted', `with ${concurrent} at once`)
        same(took(before).length, concurrent, 'the far end took another number of messages')
        if (given.carriesReference !== false) {
          const references = new Set(took(before).map(({ reference }) => reference))
          const ids = new Set(sent.map(({ noticeId }) => noticeId))
          same(references, ids, 'the references are not the notice ids')
        }
        await patient.close()
      },
    },
    {
      says: 'ends everything it opened when closed, then says unavailable',
      async keep() {
        const own = await startFarEnd()
        const short = create(own.port)
        await send(short)
        assert.ok(own.openConnections() > 0, 'the far end counts no open connection after a send')
        await own.behave('hang')
        const underWay = send(short)
        await short.close()
        const { result } = await underWay
        assert.ok(result.kind !== 'accepted', 'a send that was given up was called accepted')
        await eventually(() => own.openConnections() === 0).catch(() =>
          assert.fail(`${own.openConnections()} connections are open after close()`),
        )
        isOneOf((await send(short)).result, 'unavailable', 'after close()')
        await short.close()
        await own.close()
      },
    },
    {
      says: 'tells no recipient, text or secret in any result (I14)',
      async keep() {
        const told = JSON.stringify(results)
        assert.ok(results.length > 5, 'there were too few results to tell')
        const { to, text, html, subject, variables } = message
        const texts = [text, html, subject, ...Object.values(variables)]
        for (const word of [to, to.replace(/^\+/, ''), ...texts, ...given.secrets]) {
          assert.ok(!word || !told.includes(word), `a result holds "${word}"`)
        }
      },
    },
  ]

  /** After each promise the far end behaves well again, and must report no fault. */
  async function kept(keep: () => Promise<void>): Promise<void> {
    const before = farEnd.complaints.length
    try {
      await keep()
    } finally {
      await farEnd.behave('accept')
    }
    const complaints = farEnd.complaints.slice(before)
    same(complaints, [], `the far end complained: ${complaints.join('; ')}`)
  }

  return {
    promises: promises.map(({ says, keep }) => ({ says, keep: () => kept(keep) })),
    async open() {
      farEnd = await startFarEnd()
      provider = create(farEnd.port)
    },
    async close() {
      await provider?.close()
      await farEnd?.close()
    },
  }
}

/**
 * Tests every promise and reports each result. A promise that does not end may still use its provider and its far
 * end, so later promises get others. Returns the number of broken promises.
 */
export async function tryAll(
  given: ConformanceCase,
  tools: FarEndTools,
  withinMs: number,
  tell: (says: string, fault?: Error) => void,
): Promise<number> {
  const results: SendResult[] = []
  let isLate = false
  const inTime = (work: Promise<void>) =>
    orLate(work, withinMs, () => {
      isLate = true
      throw new Error(`did not end within ${withinMs / 1_000} s`)
    })
  async function open() {
    const opened = createSuite(given, tools, results)
    await inTime(opened.open())
    return opened
  }
  let suite = await open()
  let broken = 0
  for (const at of suite.promises.keys()) {
    const { says, keep } = suite.promises[at] as ProviderPromise
    isLate = false
    try {
      await inTime(keep())
      tell(says)
    } catch (error) {
      broken += 1
      tell(says, error as Error)
    }
    if (isLate) {
      // Closing may not end either.
      void suite.close().catch(() => {})
      suite = await open()
    }
  }
  await inTime(suite.close()).catch(() => {})
  return broken
}
