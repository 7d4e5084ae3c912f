/** Senders by country, of every kind that has a sender. */
import { describe, expect, it } from 'vitest'
import type { ZodType } from 'zod'
import { createServes } from '../../src/providers/kinds.ts'
import type { ProviderKind } from '../../src/providers/provider-kind.ts'
import * as aliyun from './cases/aliyun.ts'
import * as aliyunPnvs from './cases/aliyun-pnvs.ts'
import * as http from './cases/http.ts'
import * as smpp from './cases/smpp.ts'
import * as tencent from './cases/tencent.ts'
import * as twilio from './cases/twilio.ts'
import * as vonage from './cases/vonage.ts'
import type { ConformanceCase } from './conformance.ts'
import { farEndTools } from './far-ends/http.ts'

/** Requests over HTTP, or packets of SMPP. */
type Seen = object & { readonly requests?: unknown; readonly submits?: unknown }

interface Case {
  readonly given: ConformanceCase
  readonly name: 'from' | 'signName'
  /** The sender in a request, or in a packet of SMPP. */
  senderIn(farEnd: Seen): unknown
}

const form = (farEnd: Seen) => {
  const [{ body }] = farEnd.requests as [{ body: string }]
  return new URLSearchParams(body)
}
const query = (farEnd: Seen) => {
  const [{ query, body }] = farEnd.requests as [{ query: URLSearchParams; body: string }]
  return query.get('SignName') ?? new URLSearchParams(body).get('SignName')
}
const json = (farEnd: Seen) => {
  const [{ body }] = farEnd.requests as [{ body: string }]
  return JSON.parse(body)
}

const cases: Record<string, Case> = {
  twilio: { given: twilio, name: 'from', senderIn: (farEnd) => form(farEnd).get('From') },
  vonage: { given: vonage, name: 'from', senderIn: (farEnd) => form(farEnd).get('from') },
  smpp: {
    given: smpp,
    name: 'from',
    senderIn: ({ submits }) => (submits as [{ source_addr: string }])[0].source_addr,
  },
  http: {
    given: {
      default: http.default,
      conformance: {
        ...http.conformance,
        settings: (port) => ({
          ...http.conformance.settings(port),
          json: { ...http.entry.json, sender: '{{from}}' },
          from: 'Acme',
        }),
      },
    },
    name: 'from',
    senderIn: (farEnd) => json(farEnd).sender,
  },
  aliyun: { given: aliyun, name: 'signName', senderIn: query },
  'aliyun-pnvs': { given: aliyunPnvs, name: 'signName', senderIn: query },
  tencent: { given: tencent, name: 'signName', senderIn: (farEnd) => json(farEnd).SignName },
}

describe.each(Object.entries(cases))('%s', (_, { given, name, senderIn }) => {
  const kind = given.default as ProviderKind
  const settingsWith = (sender: unknown, port = 1) => {
    const { messagingServiceSid: __, ...settings } = given.conformance.settings(port)
    return { ...settings, [name]: sender }
  }

  async function sendTo(country: string, sender: unknown) {
    const farEnd = await given.conformance.startFarEnd(farEndTools)
    const settings = kind.settings.parse(settingsWith(sender, farEnd.port))
    const deps = { timeoutMs: 60_000, concurrency: 10, clock: Date.now, ...given.conformance.deps }
    const provider = kind.create('phone', settings, deps)
    const message = { ...given.conformance.message, noticeId: 'n-1', country }
    const result = await provider.send(message, new AbortController().signal)
    await provider.close()
    await farEnd.close()
    return { result, farEnd }
  }

  it('by country: the sender of the country, otherwise the default', async () => {
    const senders = { default: 'Acme', GB: 'AcmeGB', FR: false }
    const own = await sendTo('GB', senders)
    expect([own.result.kind, senderIn(own.farEnd as Seen)]).toEqual(['accepted', 'AcmeGB'])
    const other = await sendTo('US', senders)
    expect([other.result.kind, senderIn(other.farEnd as Seen)]).toEqual(['accepted', 'Acme'])
    expect((await sendTo('FR', senders)).result).toEqual({
      kind: 'rejected',
      detail: expect.stringMatching(/: no sender for this country$/),
    })
  })

  it('serves the countries of its senders; without default no others; with one sender all', () => {
    const served = (sender: unknown) => {
      const settings = kind.settings.parse(settingsWith(sender))
      const serves = createServes(new Map([['phone', { kind, settings }]]))
      return ['GB', 'FR', 'US', ''].filter((country) => serves('phone', country))
    }
    expect(served('Acme')).toEqual(['GB', 'FR', 'US', ''])
    expect(served({ default: 'Acme', FR: false })).toEqual(['GB', 'US', ''])
    expect(served({ GB: 'Acme', FR: 'Acme' })).toEqual(['GB', 'FR'])
    expect(served({ default: false, GB: 'Acme' })).toEqual(['GB'])
  })

  it.each([
    { UK: 'Acme' },
    { XX: 'Acme', default: 'Acme' },
    { gb: 'Acme' },
    { GB: true },
    { GB: '' },
    { GB: false },
    {},
  ])('%j is refused', (sender) => {
    expect((kind.settings as ZodType).safeParse(settingsWith(sender)).success).toBe(false)
  })
})

it('a kind without senders serves all countries', () => {
  const { serves: _, ...kind } = vonage.default as ProviderKind
  const serves = createServes(new Map([['phone', { kind, settings: {} }]]))
  expect([serves('phone', 'GB'), serves('other', 'GB')]).toEqual([true, true])
})
