/** `compat` in the policy file. */
import { expect, test } from 'vitest'
import { start } from '../../src/main/compose.ts'
import { loadConfig } from '../../src/main/load-config.ts'
import { apiKey } from '../tools/api-key.ts'
import { testDatabase } from '../tools/database.ts'
import { noLimits, posternEnv } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'

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
const logto = { kind: 'logto', secret: 'a long random text', app: 'web' }
/** The mistake, without the secret. */
const hookSecret = /^compat\.hooks\.a\.secret: (?!.*(1234567|c2hvcnQ))/
const whsec = (letter: string) => `v1,whsec_${Buffer.alloc(24, letter).toString('base64')}`

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
    /^compat\.twilioVerify\.services\.VA1: must be VA and 32 hex digits$/,
  ],
  [
    'two services of one scene',
    { twilioVerify: { services: { [va]: signup, [`VA${'b'.repeat(32)}`]: signup } } },
    /^compat\.twilioVerify\.services: two services have the same app and scene$/,
  ],
  [
    '101 services of one app',
    {
      twilioVerify: {
        services: Object.fromEntries(
          Array.from({ length: 101 }, (_, at) => [
            `VA${String(at).padStart(32, '0')}`,
            { app: 'web', scene: `scene-${at}` },
          ]),
        ),
      },
    },
    /^compat\.twilioVerify\.services: an app has more than 100 services/,
  ],
  [
    'an unknown product',
    { hooks: { a: { ...logto, kind: 'auth0' } } },
    /^compat\.hooks\.a\.kind: /,
  ],
  ['a short secret', { hooks: { a: { ...logto, secret: '1234567' } } }, hookSecret],
  [
    'a secret of another form',
    { hooks: { a: { ...logto, kind: 'supabase', secret: 'v1,whsec_c2hvcnQ=' } } },
    hookSecret,
  ],
  [
    'a scene that is none',
    { hooks: { a: { ...logto, scene: '1st' } } },
    /^compat\.hooks\.a\.scene: /,
  ],
  ['no app', { hooks: { a: { kind: 'logto', secret: logto.secret } } }, /^compat\.hooks\.a\.app: /],
  [
    'another member',
    { hooks: { a: { ...logto, url: 'https://x.test' } } },
    /^compat\.hooks\.a\.url: /,
  ],
  [
    'a name with a slash',
    { hooks: { 'a/b': logto } },
    /^compat\.hooks\.a\/b: must be letters, digits, _ and -$/,
  ],
  [
    'one secret for two hooks',
    {
      hooks: {
        web: { kind: 'logto', secret: 'a long random text', app: 'web' },
        shop: { kind: 'zitadel', secret: 'a long random text', app: 'shop' },
      },
    },
    /^compat\.hooks\.shop\.secret: is also the secret of web; each hook needs a separate secret$/,
  ],
  [
    'one of the secrets of another hook',
    {
      hooks: {
        web: { kind: 'supabase', secret: `${whsec('a')}|${whsec('b')}|${whsec('b')}`, app: 'web' },
        shop: { kind: 'supabase', secret: `${whsec('c')}, ${whsec('b')}`, app: 'shop' },
      },
    },
    /^compat\.hooks\.shop\.secret: is also the secret of web; /,
  ],
])('%s → a problem with its place', async (_, compat, expected) => {
  const { problems } = await load({ compat })
  expect(problems).toEqual([expect.stringMatching(expected)])
})

test('a policy of the file with the name of a façade’s policy → a problem with its place', async () => {
  const compat = { camara: { maxCodes: 5, window: '24h' } }
  const policies = { ...noLimits, camara: [] }
  const { problems } = await load({ compat, policies })
  expect(problems).toEqual([
    expect.stringMatching(/^policies\.camara: is the name of a policy of a plugin/),
  ])
  expect((await load({ policies })).problems).toEqual([])
})

test('a reload without the section: the policy of the façade stays until the restart that it needs', async () => {
  const [redis, database] = [await testRedis(), await testDatabase()]
  const configOf = async (sections: Record<string, unknown>) => {
    const policyFile = { policies: noLimits, ...sections }
    const loaded = await loadConfig(posternEnv({ policyFile, redis, database }))
    return loaded.ok ? loaded.config : expect.unreachable()
  }
  const running = await start(
    await configOf({ compat: { camara: { maxCodes: 1, window: '24h' } } }),
    { api: true, worker: false },
    { keyPrefix: redis.prefix, quietMs: 0 },
  )
  releaseLater(() => running.close())
  const rule = { name: 'all', key: '{app}', sliding: '9 per 1h' }
  const next = await configOf({ policies: { ...noLimits, captcha: [rule] } })
  const reloaded = running.reload(next)
  expect(reloaded).toMatchObject({ reloaded: ['policies'] })
  expect(reloaded.needRestart).toContain('compat')
  const key = await apiKey(database)
  const send = () =>
    fetch(`${running.addresses.api}/one-time-password-sms/v1/send-code`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ phoneNumber: '+8613800150001', message: '{{code}} is your code' }),
    })
  expect((await send()).status).toBe(200)
  expect((await send()).status).toBe(403)
})
