/** The settings of the demo. */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { loadDemoConfig, reserveName, switchableIn } from '../../src/dev/demo-config.ts'
import { repositoryRoot } from '../tools/source-files.ts'

const shipped = readFileSync(join(repositoryRoot, 'postern.yaml'), 'utf8')

function loadWith(sections: Readonly<Record<string, unknown>>) {
  const file = join(mkdtempSync(join(inject('runFolder'), 'demo-')), 'postern.yaml')
  const templates = join(repositoryRoot, 'templates')
  writeFileSync(file, stringify({ ...parse(shipped), templates, ...sections }))
  return loadDemoConfig({
    DATABASE_URL: 'postgresql://127.0.0.1:9/x',
    REDIS_URL: 'redis://127.0.0.1:9',
    SECRET: 'a secret of at least thirty-two bytes',
    POSTERN_CONFIG: file,
  })
}

test('all messages go to one sandbox → another stands behind it, and the first can be switched off', async () => {
  const routes = { email: [{ use: ['box'] }], sms: [{ match: { country: 'CN' }, use: ['box'] }] }
  const loaded = await loadWith({ providers: { box: { kind: 'sandbox' } }, routes })
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  const { file } = loaded.config
  expect(Object.keys(file.providers)).toEqual(['box', reserveName, 'caller'])
  expect(switchableIn(file)).toBe('box')
  expect(file.routes.voice[0]?.use.map(({ provider }) => provider)).toEqual(['caller'])
  expect(file.browser.workflows).toEqual(['default'])
  expect([...file.links]).toEqual([['signup', 'http://localhost:3000/']])
  const orderOf = (route: (typeof file.routes.sms)[number] | undefined) =>
    route?.use.map(({ provider }) => provider)
  expect(orderOf(file.routes.email[0])).toEqual(['box', reserveName])
  expect(orderOf(file.routes.sms[0])).toEqual(['box', reserveName])
  expect(file.routes.sms[0]?.match.country).toEqual(['CN'])
})

test('a policy file with separate providers stays as it is', async () => {
  const providers = { box: { kind: 'sandbox' }, other: { kind: 'sandbox' } }
  const routes = { email: [{ use: ['box'] }], sms: [{ use: ['other'] }] }
  const loaded = await loadWith({ providers, routes })
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  expect(Object.keys(loaded.config.file.providers)).toEqual(['box', 'other'])
  expect(switchableIn(loaded.config.file)).toBeUndefined()
})

test('a fault in the policy file is reported as everywhere', async () => {
  const loaded = await loadWith({ colour: 'red' })
  expect(loaded).toEqual({ ok: false, problems: [expect.stringContaining('colour')] })
})
