import { expect, test } from 'vitest'
import type { PolicyFile } from '../../src/config/policy-schema.ts'
import { createReloadableFile } from '../../src/config/reloadable-file.ts'

const fileWith = (prices: PolicyFile['prices']) =>
  ({ ...{ providers: {}, routes: {}, browser: {}, recipients: {} }, prices }) as PolicyFile

test('a reload that something refuses changes nothing, and the next one does', () => {
  const before = fileWith({ default: 60, email: 1 })
  const after = fileWith({ default: 90, email: 1 })
  const { file, onReload, reload } = createReloadableFile(before)
  let isRefused = true
  onReload(() => {
    if (isRefused) throw new Error('these rules do not fit')
  })
  expect(() => reload(after)).toThrow('do not fit')
  expect(file()).toBe(before)
  isRefused = false
  expect(reload(after).reloaded).toContain('prices')
  expect(file().prices).toEqual({ default: 90, email: 1 })
})

test('registered senders are taken by a reload', () => {
  const before = fileWith(undefined)
  const senders = { phone: { AU: { registered: ['ACME'], templates: {}, links: false } } }
  const { file, reload } = createReloadableFile(before)
  const { reloaded, needRestart } = reload({ ...before, senders })
  expect(reloaded).toContain('senders')
  expect(needRestart).not.toContain('senders')
  expect(file().senders).toEqual(senders)
})
