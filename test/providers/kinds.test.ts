import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  createProvider,
  createProviderKinds,
  createReceiptReader,
  ownKinds,
} from '../../src/providers/kinds.ts'
import type { ProviderKind } from '../../src/providers/provider-kind.ts'

describe('the kinds of providers', () => {
  const root = new URL('../../', import.meta.url)
  const folders = readdirSync(new URL('src/providers', root), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)

  it('are one folder each, by the same name', () => {
    expect(ownKinds.map(({ kind }) => kind).sort()).toEqual(folders.sort())
  })

  it('have a page each', () => {
    const pages = readdirSync(new URL('docs/providers', root))
    expect(pages.sort()).toEqual(['README.md', ...folders.map((name) => `${name}.md`)].sort())
  })

  it('have a case each, but for the sandbox, which is no far end', () => {
    const cases = readdirSync(new URL('test/providers/cases', root))
    const expected = folders.filter((name) => name !== 'sandbox').map((name) => `${name}.ts`)
    expect(cases.sort()).toEqual(expected.sort())
  })

  it("of somebody else's: what is no provider, no reader or no receipt is told by the provider's name", () => {
    const sandbox = ownKinds.find(({ kind }) => kind === 'sandbox') as ProviderKind
    const deps = { timeoutMs: 1, concurrency: 1, clock: Date.now }
    const good = { name: 'p', channels: ['sms'], slots: 1, send() {}, close() {} }
    const create = (made: unknown) =>
      createProvider('p', { kind: { ...sandbox, create: () => made as never }, settings: {} }, deps)
    expect(create(good)).toBe(good)
    const faults = [
      undefined,
      { ...good, name: 'q' },
      { ...good, slots: Number.NaN },
      { ...good, send: 1 },
    ]
    for (const made of [...faults, { ...good, channels: ['pigeon'] }, Promise.resolve(good)]) {
      expect(() => create(made)).toThrow(
        /^provider "p" of kind sandbox: create returned no provider: /,
      )
    }
    const read = (parsed: unknown, more: object = {}) =>
      createReceiptReader('p', {
        kind: {
          ...sandbox,
          createReceiptReader: () =>
            ({ maxBodyBytes: 9, mayBeGenuine: () => true, parse: () => parsed, ...more }) as never,
        },
        settings: {},
      })?.parse({} as never)
    const reply = { status: 200, contentType: 'text/plain', body: '' }
    const taken = { ok: true, receipts: [{ messageId: 'm', outcome: 'failed' }], reply }
    expect(read(taken)).toBe(taken)
    expect(() => read(taken, { maxBodyBytes: Number.NaN })).toThrow(
      /returned no reader: maxBodyBytes/,
    )
    for (const parsed of [
      undefined,
      { ok: false },
      { ...taken, receipts: [{ outcome: 'maybe' }] },
      { ...taken, reply: { ...reply, status: 'ok' } },
      { ...taken, reply: { ...reply, contentType: 'a\r\nb' } },
    ]) {
      expect(() => read(parsed)).toThrow(
        /^provider "p" of kind sandbox: parse returned no receipts: /,
      )
    }
  })

  it('are found by name, and only by a name of theirs', () => {
    const { find } = createProviderKinds()
    expect(find('smtp')?.channels).toEqual(['email'])
    for (const name of ['', 'SMTP', 'constructor', '__proto__']) {
      expect(find(name)).toBeUndefined()
    }
  })
})
