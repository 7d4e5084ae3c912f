import { expect, test } from 'vitest'
import type { Language } from '../../src/base/words.ts'
import { parsePolicies, type RawRule } from '../../src/limiter/index.ts'
import { explain, sentenceOf } from '../../src/rules/explain.ts'

function policiesOf(captcha: readonly RawRule[]) {
  const parsed = parsePolicies({
    captcha,
    browser: [{ include: 'captcha' }],
    'browser-guess': [],
    export: [],
  })
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  return parsed.policies
}

function sentenceIn(language: Language, rule: object) {
  const policies = policiesOf([{ name: 'rule', ...rule } as RawRule])
  const [parsed] = policies.captcha ?? []
  return parsed && sentenceOf(parsed, policies, language)
}

test.each<[object, string, string?]>([
  [
    { key: '{app}:{channel}:{to}', sliding: ['1 per 60s', '5 per 1h', '10 per 24h'] },
    'At most 1 per 60s, 5 per 1h and 10 per 24h for one recipient of one app; more are refused.',
    '同一应用的同一收件人每 60 秒最多 1 次，每 1 小时最多 5 次，每 24 小时最多 10 次，超出的被拒绝。',
  ],
  [
    { key: '{dedupe}', fixed: '2 per 60s' },
    'At most 2 in the 60s after the first, for identical messages to one recipient; more are refused.',
    '同一收件人的相同消息自第一次起，60 秒内最多 2 次，超出的被拒绝。',
  ],
  [
    { key: '{app}:{ip}', bucket: { rate: '10 per 1m', burst: 2_000 } },
    'At most 2,000 at once, then 10 per 1m, for one IP address of one app; more are refused.',
    '同一应用的同一 IP 地址可连续 2,000 次，之后每 1 分钟恢复 10 次，超出的被拒绝。',
  ],
  [
    { key: '{country}', sliding: '200 per 24h', refund: 'passed', mode: 'challenge' },
    'At most 200 per 24h for one country; more need a challenge (calls with secret keys pass without one). The uses of a code are given back when it passes.',
    '同一国家或地区每 24 小时最多 200 次，超出的须完成人机验证（私密密钥不受此限，直接放行）。验证码通过后，其占用的次数退还。',
  ],
  [
    { key: '{prefix}:{ip}', sliding: '20 per 1h', mode: 'observe' },
    'At most 20 per 1h for one number prefix or mail domain and one IP address; more are counted and reported, and pass.',
    '同一号段或邮箱域名和同一 IP 地址每 1 小时最多 20 次，超出的仍放行，只计数并报告。',
  ],
  [
    { key: '{app}', sliding: '500000 per 24h', permits: 'price' },
    "At most 500,000 per 24h for one app; more are refused. Each counts with its message's price.",
    '同一应用每 24 小时最多 500,000 次，超出的被拒绝。每次按消息的价格计数。',
  ],
  [
    {
      key: 'all',
      calendar: { limit: 100_000, cron: '0 0 * * *', timezone: 'Asia/Shanghai' },
      scope: 'per-client',
      permits: 3,
    },
    'At most 100,000 in each period of "0 0 * * *" (Asia/Shanghai), for all requests together; more are refused. Each counts as 3. Every process counts separately.',
    '所有请求合计在每个周期（"0 0 * * *"，时区 Asia/Shanghai）内最多 100,000 次，超出的被拒绝。每次计为 3 次。每个进程单独计数。',
  ],
  [
    { key: '{app}:{to}:{ip}', lockout: { limit: 3, window: '5m', lock: '15m' } },
    'After 3 sends within 5m for one recipient and one IP address of one app, the next one locks for 15 min.',
  ],
  [
    { key: '{order}', lockout: { limit: 1, window: '5m', lock: '90s', growth: 2, maxLock: '1d' } },
    'After 1 send within 5m for one {order}, the next one locks for 90 s, each further lock 2 times longer, up to 1 d.',
    '同一 {order}在 5 分钟内发送 1 次后，再次发送会被锁定 90 秒，之后每次锁定延长为 2 倍，最长 1 天。',
  ],
  [
    { key: '{country}', sliding: '0 per 1h' },
    'Nothing passes for one country.',
    '同一国家或地区一律不放行。',
  ],
  [{ key: '{country}', sliding: ['0 per 1h', '9 per 24h'] }, 'Nothing passes for one country.'],
  [
    { key: '{channel}', sliding: '0 per 1h', mode: 'observe' },
    'At most 0 per 1h for one channel; more are counted and reported, and pass.',
  ],
  [
    { key: '{to}', lockout: { limit: 3, window: '5m', lock: '15m' }, mode: 'observe' },
    'After 3 sends within 5m for one recipient; more are counted and reported, and pass.',
    '同一收件人在 5 分钟内发送 3 次后，超出的仍放行，只计数并报告。',
  ],
  [
    { key: '{to}', lockout: { limit: 3, window: '5m', lock: '15m' }, refund: 'passed' },
    'After 3 sends within 5m for one recipient, the next one locks for 15 min.',
  ],
  [
    { key: '{app}', sliding: '9 per 1h', permits: 'amount' },
    'At most 9 per 1h for one app; more are refused. Each counts with the value of its field amount.',
  ],
])('%j', (rule, english, chinese) => {
  expect(sentenceIn('en', rule)).toBe(english)
  if (chinese) expect(sentenceIn('zh', rule)).toBe(chinese)
})

test.each([
  [
    { key: '{app}:{channel}:{to}', sliding: ['1 per 60s', '5 per 1h', '10000 per 24h'] },
    'Höchstens 1 in 60 s, 5 in 1 h und 10.000 in 24 h für einen Empfänger einer App; weitere werden abgelehnt.',
  ],
  [
    { key: '{order}', lockout: { limit: 1, window: '5m', lock: '90s', growth: 2, maxLock: '2d' } },
    'Nach 1 Sendung innerhalb von 5 min für ein {order} sperrt die nächste für 90 s, jede weitere Sperre 2-mal so lange, höchstens 2 Tage.',
  ],
  [
    { key: '{country}', sliding: '200 per 24h', permits: 3, refund: 'passed', mode: 'observe' },
    'Höchstens 200 in 24 h für ein Land; weitere werden gezählt, gemeldet und zugelassen. Jede zählt als 3. Die Nutzungen eines Codes werden zurückgegeben, wenn er richtig eingegeben wird.',
  ],
])('in German: %j', (rule, sentence) => {
  expect(sentenceIn('de', rule)).toBe(sentence)
})

test('a policy that includes captcha decides in its place; any other is for callers of the limiter', () => {
  const own = { name: 'own', key: '{to}', sliding: '5 per 24h' }
  const captcha = [{ name: 'recipient', key: '{to}', sliding: '1 per 60s' }]
  const parsed = parsePolicies({ captcha, camara: [own, { include: 'captcha' }], export: [own] })
  const heads = explain(parsed.ok ? parsed.policies : {}).match(/^\w+, .*$/gm)
  expect(heads).toEqual([
    'captcha, before a code is sent:',
    'camara, in place of captcha, for sends in process that name this policy:',
    'export, for callers of the limiter and of login attempts:',
  ])
})

test.each([
  [{ refund: 'passed', mode: 'observe' }, 'more are counted and reported, and pass.'],
  [{ mode: 'challenge' }, 'more need a challenge (calls with secret keys pass without one).'],
] as const)('%j of checks: only the check with the right code is given back', (options, more) => {
  const rule = { name: 'budget', key: '{to}', sliding: '20 per 24h', ...options }
  const parsed = parsePolicies({ check: [rule], 'browser-guess': [{ include: 'check' }] })
  const policies = parsed.ok ? parsed.policies : {}
  const [budget] = policies.check ?? []
  expect(budget && sentenceOf(budget, policies)).toBe(
    `At most 20 per 24h for one recipient; ${more} A right code is not counted.`,
  )
  expect(budget && sentenceOf(budget, policies, 'zh')).toMatch(/。正确的验证码不计数。$/)
})

const lockout = { name: 'lock', key: '{to}', lockout: { limit: 3, window: '15m', lock: '15m' } }
const ip = { name: 'ip', key: '{ip}', sliding: '9 per 1h' }
const common = [{ include: 'common' }]
const nextLocks = 'within 15m for one recipient, the next one locks for 15 min.'

test.each([
  [
    'of checks: the last wrong code locks, and not the one after it',
    { check: [lockout], 'browser-guess': [{ include: 'check' }] },
    'After 3 wrong codes within 15m for one recipient, checks are locked for 15 min.',
    '同一收件人在 15 分钟内输错 3 次后，校验被锁定 15 分钟。',
  ],
  [
    'that check includes',
    { common: [lockout], check: common, 'browser-guess': [{ include: 'check' }] },
    'After 3 wrong codes within 15m for one recipient, checks are locked for 15 min.',
    '同一收件人在 15 分钟内输错 3 次后，校验被锁定 15 分钟。',
  ],
  [
    'that captcha includes',
    { common: [lockout], captcha: [...common, ip], camara: [{ include: 'captcha' }] },
    `After 3 sends ${nextLocks}`,
    '同一收件人在 15 分钟内发送 3 次后，再次发送会被锁定 15 分钟。',
  ],
  [
    'of login attempts, for which another policy includes it',
    { common: [lockout], login: common },
    `After 3 tries ${nextLocks}`,
    '同一收件人在 15 分钟内尝试 3 次后，再次尝试会被锁定 15 分钟。',
  ],
  [
    'that sends and checks share',
    { common: [lockout], captcha: common, check: common },
    `After 3 uses ${nextLocks}`,
    '同一收件人在 15 分钟内使用 3 次后，再次使用会被锁定 15 分钟。',
  ],
])('a lockout %s', (_, raw, english, chinese) => {
  const parsed = parsePolicies(raw)
  const policies = parsed.ok ? parsed.policies : {}
  const [rule] = Object.values(policies).flat()
  expect(rule && sentenceOf(rule, policies)).toBe(english)
  expect(rule && sentenceOf(rule, policies, 'zh')).toBe(chinese)
})

test('each policy once, with its use; included rules are where they are declared', () => {
  expect(explain(policiesOf([{ name: 'ip', key: '{ip}', sliding: '5 per 1h' }]))).toBe(
    `captcha, before a code is sent:
  ip: At most 5 per 1h for one IP address; more are refused.

browser, together with captcha's rules, for publishable keys (browser.rules):
  The rules of captcha.

export, for callers of the limiter and of login attempts:
  No limits.
`,
  )
})

test('a policy that others include is a part of them, and they name it', () => {
  const rule = { name: 'recipient', key: '{to}', sliding: '1 per 60s' }
  const parsed = parsePolicies({ captcha: [{ include: 'common' }], common: [rule] })
  expect(explain(parsed.ok ? parsed.policies : {})).toBe(
    `captcha, before a code is sent:
  The rules of common.

common, as a part of other policies:
  recipient: At most 1 per 60s for one recipient; more are refused.
`,
  )
})
