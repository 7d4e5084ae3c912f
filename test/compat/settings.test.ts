/** `compat` in the policy file. */
import { expect, test } from 'vitest'
import { loadConfig } from '../../src/main/load-config.ts'
import { noLimits, posternEnv } from '../tools/postern.ts'

const nowhere = { redis: { url: 'redis://localhost' }, database: { url: 'postgresql://localhost' } }

async function load(sections: Record<string, unknown>) {
  const policyFile = { policies: noLimits, ...sections }
  const loaded = await loadConfig(posternEnv({ policyFile, ...(nowhere as object) } as never))
  return {
    plugins: loaded.ok ? loaded.config.plugins.map(({ name }) => name) : [],
    problems: loaded.ok ? [] : loaded.problems.map((problem) => problem.replace(/^.*?:\d+: /, '')),
  }
}

const va = `VA${'a'.repeat(32)}`
const signup = { app: 'web', scene: 'signup' }

test('each façade is off unless it is named', async () => {
  expect(await load({})).toEqual({ plugins: [], problems: [] })
  const compat = { twilioVerify: { services: { [va]: signup } } }
  expect(await load({ compat })).toEqual({ plugins: ['twilioVerify'], problems: [] })
})

test.each<[string, unknown, RegExp]>([
  ['an unknown façade', { vonage: {} }, /^compat\.vonage: is not one of twilioVerify/],
  ['a name of JavaScript', { constructor: {} }, /^compat\.constructor: is not one of /],
  ['no services', { twilioVerify: {} }, /^compat\.twilioVerify\.services: /],
  ['null', { twilioVerify: null }, /^compat\.twilioVerify: /],
  [
    'an unknown key',
    { twilioVerify: { services: { [va]: { ...signup, colour: 'red' } } } },
    /\.colour: unknown key$/,
  ],
  [
    'a SID that is none',
    { twilioVerify: { services: { VA1: signup } } },
    /^compat\.twilioVerify\.services\.VA1: /,
  ],
  [
    'two services of one scene',
    { twilioVerify: { services: { [va]: signup, [`VA${'b'.repeat(32)}`]: signup } } },
    /^compat\.twilioVerify\.services: two services have the same app and scene$/,
  ],
])('%s → a problem with its place', async (_, compat, expected) => {
  const { problems } = await load({ compat })
  expect(problems).toEqual([expect.stringMatching(expected)])
})
