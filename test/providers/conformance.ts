import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import type { Message, Provider, SendResult } from '../../src/providers/provider.ts'
import type { ProviderDeps, ProviderKind } from '../../src/providers/provider-kind.ts'

/**
 * What every kind of provider must do, whatever its protocol. A kind brings a far end that behaves
 * like the vendor (checks signatures, answers in the vendor's shapes) and can be told to misbehave.
 */
export type Behaviour =
  | 'accept'
  | 'reject'
  | 'invalid_recipient'
  | 'throttle'
  /** The protocol's own "not now" for this one recipient: a 450 to RCPT, a cap on one number (I30). */
  | 'postpone'
  /** A clear "not now" of the far end: 5xx or the protocol's own word for it (F14). */
  | 'unavailable'
  /** A failure inside a successful answer: HTTP 200, or a good connection and a bad body (F16). */
  | 'error_inside'
  /** Connects and never answers (F15). */
  | 'hang'
  /** Cuts the connection before it has read anything (F14). */
  | 'refuse_talk'
  /** Cuts the connection in the middle of its answer (F14). */
  | 'reset_mid_answer'
  /** Takes the message, then cuts the connection instead of answering (F18). */
  | 'lose_answer'
  /** Answers with bytes that mean nothing. */
  | 'babble'

export interface FarEnd {
  /** Holds for every connection from when it resolves. */
  behave(behaviour: Behaviour): Promise<void>
  /** What it has accepted, by the reference it saw. */
  readonly taken: readonly { readonly reference: string; readonly to: string }[]
  /** Faults it saw in the provider: a wrong signature, a missing header. Empty when all was well. */
  readonly complaints: readonly string[]
  /** Connections open now. */
  openConnections(): number
  close(): Promise<void>
}

export interface ConformanceCase<Settings> {
  readonly kind: ProviderKind<Settings>
  startFarEnd(): Promise<FarEnd & { port: number }>
  /** The policy-file entry for a far end on this loopback port. */
  settings(port: number): Record<string, unknown>
  /** Words that must never be seen in a result: keys, passwords, tokens. */
  readonly secrets: readonly string[]
  readonly message: Omit<Message, 'noticeId'>
  /** What each behaviour must come out as; a behaviour that the protocol can't show is left out. */
  readonly expected: Partial<
    Record<Behaviour, SendResult['kind'] | readonly SendResult['kind'][]>
  > & {
    /** Never `throttled` or `unavailable`: those keep everybody's messages back. */
    readonly postpone: 'postponed'
  }
  readonly deps?: Partial<ProviderDeps>
  /** False where the protocol has no place for our reference; the kind's page says so. */
  readonly carriesReference?: boolean
}

/** A provider of a kind against its far end, for as long as `run` takes. */
export async function withProvider<Settings, End extends { port: number; close(): Promise<void> }>(
  given: Pick<ConformanceCase<Settings>, 'kind' | 'settings'> & { startFarEnd(): Promise<End> },
  run: (provider: Provider, farEnd: End) => Promise<void>,
): Promise<void> {
  const { kind } = given
  const farEnd = await given.startFarEnd()
  const settings = kind.settings.parse(given.settings(farEnd.port))
  const provider = kind.create(kind.kind, settings, {
    timeoutMs: 2_000,
    concurrency: 100,
    clock: Date.now,
  })
  try {
    await run(provider, farEnd)
  } finally {
    await provider.close()
    await farEnd.close()
  }
}

/** The time limit where a test waits for it; long enough for every handshake otherwise. */
const shortMs = 300

const faultNumbers: Partial<Record<Behaviour, string>> = {
  unavailable: 'F14',
  refuse_talk: 'F14',
  reset_mid_answer: 'F14',
  hang: 'F15',
  error_inside: 'F16',
  throttle: 'F17',
  lose_answer: 'F18',
}

export function testConformance<Settings>(given: ConformanceCase<Settings>): void {
  const { kind, message, expected } = given

  describe(`${kind.kind} keeps the provider contract`, () => {
    let farEnd: FarEnd & { port: number }
    let provider: Provider
    const results: SendResult[] = []

    beforeAll(async () => {
      farEnd = await given.startFarEnd()
      provider = create(farEnd.port)
    })
    afterAll(async () => {
      await provider.close()
      await farEnd.close()
    })
    afterEach(async () => {
      await farEnd.behave('accept')
      expect(farEnd.complaints).toEqual([])
    })

    function create(port: number, timeoutMs = 30_000): Provider {
      const settings = kind.settings.parse(given.settings(port))
      const deps = { timeoutMs, concurrency: 100, clock: Date.now, ...given.deps }
      return kind.create('under-test', settings, deps)
    }

    async function send(to: Provider = provider, signal = new AbortController().signal) {
      const noticeId = newId()
      const result = await to.send({ ...message, noticeId }, signal)
      results.push(result)
      return { result, noticeId }
    }

    it('says what it is', () => {
      expect(provider).toMatchObject({ name: 'under-test', kind: kind.kind })
      expect(kind.channels).toContain(message.channel)
    })

    it('refuses unknown keys in its settings', () => {
      const entry = { ...given.settings(1), colour: 'blue' }
      expect(kind.settings.safeParse(entry).success).toBe(false)
    })

    for (const [behaviour, kinds] of Object.entries(expected) as [Behaviour, string][]) {
      const number = faultNumbers[behaviour] ? ` (${faultNumbers[behaviour]})` : ''
      it(`answers ${kinds} when the far end does: ${behaviour}${number}`, async () => {
        await farEnd.behave(behaviour)
        const before = farEnd.taken.length
        const hasty = behaviour === 'hang' ? create(farEnd.port, shortMs) : undefined
        const startedAt = performance.now()
        const { result, noticeId } = await send(hasty ?? provider)
        await hasty?.close()
        // A lost connection is noticed, not waited for.
        expect(performance.now() - startedAt).toBeLessThan(15_000)
        expect([kinds].flat()).toContain(result.kind)
        if (result.kind === 'throttled') expect(result.retryAfterMs).toBeGreaterThan(0)
        if (result.kind === 'accepted' || behaviour === 'lose_answer') {
          expect(farEnd.taken.slice(before).map((taken) => taken.to)).toEqual([message.to])
          if (given.carriesReference !== false) {
            expect(farEnd.taken.at(-1)?.reference).toBe(noticeId)
          }
        } else if (result.kind !== 'unknown') {
          expect(farEnd.taken.length).toBe(before)
        }
      })
    }

    it('sends the same reference again when a notice is retried (I8)', async () => {
      if (given.carriesReference === false) return
      const noticeId = newId()
      const signal = new AbortController().signal
      await provider.send({ ...message, noticeId }, signal)
      await provider.send({ ...message, noticeId }, signal)
      expect(farEnd.taken.slice(-2).map((taken) => taken.reference)).toEqual([noticeId, noticeId])
    })

    it('gives up at the signal, not at its own time limit, when the far end hangs (F15)', async () => {
      await farEnd.behave('hang')
      const patient = create(farEnd.port)
      const controller = new AbortController()
      let abortedAt = 0
      setTimeout(() => {
        abortedAt = performance.now()
        controller.abort()
      }, 150)
      const { result } = await send(patient, controller.signal)
      expect(abortedAt).toBeGreaterThan(0)
      expect(performance.now() - abortedAt).toBeLessThan(15_000)
      expect([expected.hang].flat()).toContain(result.kind)
      await patient.close()
    })

    it('sends nothing when the signal has been aborted before', async () => {
      const before = farEnd.taken.length
      const { result } = await send(provider, AbortSignal.abort())
      expect(result.kind).toBe('unavailable')
      expect(farEnd.taken.length).toBe(before)
    })

    it('keeps its own time limit when the signal never comes (F15)', async () => {
      await farEnd.behave('hang')
      const hasty = create(farEnd.port, shortMs)
      const startedAt = performance.now()
      await send(hasty)
      expect(performance.now() - startedAt).toBeLessThan(shortMs + 200)
      await hasty.close()
    })

    it('answers unavailable when nobody listens', async () => {
      const other = await given.startFarEnd()
      await other.close()
      const lonely = create(other.port)
      expect((await send(lonely)).result.kind).toBe('unavailable')
      await lonely.close()
    })

    it('keeps 50 concurrent messages apart', async () => {
      const before = farEnd.taken.length
      const patient = create(farEnd.port)
      const sent = await Promise.all(Array.from({ length: 50 }, () => send(patient)))
      expect(sent.map(({ result }) => result.kind)).toEqual(Array(50).fill('accepted'))
      expect(farEnd.taken.length - before).toBe(50)
      if (given.carriesReference !== false) {
        const references = farEnd.taken.slice(before).map((taken) => taken.reference)
        expect(new Set(references)).toEqual(new Set(sent.map(({ noticeId }) => noticeId)))
      }
      await patient.close()
    })

    it('ends everything it opened when closed, then says unavailable', async () => {
      const own = await given.startFarEnd()
      const short = create(own.port)
      await send(short)
      expect(own.openConnections()).toBeGreaterThan(0)
      await own.behave('hang')
      const underWay = send(short)
      await short.close()
      expect((await underWay).result.kind).not.toBe('accepted')
      await expect.poll(() => own.openConnections()).toBe(0)
      expect((await send(short)).result.kind).toBe('unavailable')
      await short.close()
      await own.close()
    })

    it('tells no recipient, text or secret in any result (I14)', () => {
      const told = JSON.stringify(results)
      const forbidden = [message.to, message.to.replace(/^\+/, ''), message.text, ...given.secrets]
      if (message.html) forbidden.push(message.html)
      if (message.subject) forbidden.push(message.subject)
      forbidden.push(...Object.values(message.variables))
      expect(results.length).toBeGreaterThan(5)
      for (const word of forbidden) expect(told).not.toContain(word)
    })
  })
}
