/** The state that a reload of the page finds, with a clock and a tab's storage of the test. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { readSaved, type Saved, writeSaved } from '../../web/saved-code.ts'

const stored = new Map<string, string>()
const sent = {
  id: 'n1',
  to: '13800138000',
  shownTo: '+86138****8000',
  codeLength: 4,
  aheadMs: 0,
  expiresAtMs: 300_000,
}
const saved: Saved = {
  channel: 'sms',
  sent,
  waits: { sms: { to: sent.to, untilMs: 3_600_000, forMs: 60_000 } },
  locks: { sms: { to: sent.to, untilMs: 900_000, forMs: 60_000 } },
}

beforeEach(() => {
  stored.clear()
  vi.stubGlobal('sessionStorage', {
    getItem: (name: string) => stored.get(name) ?? null,
    setItem: (name: string, value: string) => void stored.set(name, value),
    removeItem: (name: string) => void stored.delete(name),
  })
  vi.useFakeTimers({ now: 0, toFake: ['Date'] })
  writeSaved('field', saved)
})
afterEach(() => void vi.unstubAllGlobals())

test('a reload while the code lives finds it', () => {
  vi.setSystemTime(sent.expiresAtMs - 1)
  expect(readSaved('field')).toEqual(saved)
})

test('a reload after the life of the code finds none, but the wait of its address', () => {
  vi.setSystemTime(sent.expiresAtMs)
  expect(readSaved('field')).toEqual({ ...saved, sent: undefined })
})

test('another field, a removed one and an unreadable one begin anew', () => {
  expect(readSaved('other')).toBe(undefined)
  stored.set('field', '{')
  expect(readSaved('field')).toBe(undefined)
  writeSaved('field')
  expect(stored.size).toBe(0)
})

test('what is no such thing begins anew', () => {
  stored.set('field', 'null')
  expect(readSaved('field')).toBe(undefined)
})
