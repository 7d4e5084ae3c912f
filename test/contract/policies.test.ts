/** The files in policies/: each loads and does what its comments promise, and the starter is the default file. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { parsePolicyFile } from '../../src/config/policy-file.ts'
import {
  createLimiter,
  parsePolicies,
  type RawPolicies,
  type RawRule,
} from '../../src/limiter/index.ts'
import { createSectionChecks } from '../../src/main/load-config.ts'
import { afterPass } from '../../src/rules/guess-limits.ts'
import { pageCheckPolicy, pagePolicy, withPageRules } from '../../src/rules/policies.ts'

const names = ['starter', 'strict', 'china', 'global']
const pathOf = (name: string) =>
  fileURLToPath(new URL(`../../policies/${name}.yaml`, import.meta.url))
const read = (path: string) => readFileSync(path, 'utf8')

/** Every rule of a file, with the comment above it. A comment belongs to all rules right below it. */
function rulesOf(name: string) {
  const { policies, browser } = parse(read(pathOf(name)))
  const declared: [string, RawRule[]][] = [
    ...Object.entries(policies),
    [pagePolicy, browser.rules],
    [pageCheckPolicy, browser.checkRules],
  ] as never
  const lines = read(pathOf(name)).split('\n')
  return declared.flatMap(([policy, rules]) =>
    rules.map((rule) => {
      const at = lines.findIndex((line) => line.includes(`name: ${rule.name},`))
      let from = at
      while (lines[from - 1]?.trim().startsWith('#')) from -= 1
      return { policy, rule, comment: lines.slice(from, at).join('\n') }
    }),
  )
}

const fields = {
  app: 'shop',
  channel: 'sms',
  to: '+8613800138000',
  country: 'CN',
  prefix: '+861380013',
  block: '+861380013',
  mailbox: '+8613800138000',
  ip: '192.0.2.1',
  dedupe: 'x',
  keyId: 'key',
  scene: 'login',
  template: 'captcha',
  subject: 'ada',
  lane: 'stranger',
  price: 1_000,
}

test.each(names)('policies/%s.yaml is a file that starts', async (name) => {
  const checks = createSectionChecks()
  const result = await parsePolicyFile(read(pathOf(name)), pathOf(name), {}, checks)
  expect(result).toMatchObject({ ok: true })
})

test('postern.yaml is policies/starter.yaml, but for where the templates are', () => {
  const starter = read(pathOf('starter')).replace(
    'templates: ../templates',
    'templates: ./templates',
  )
  expect(read(fileURLToPath(new URL('../../postern.yaml', import.meta.url)))).toBe(starter)
})

/** Every policy file that the project ships. */
const shipped = [
  ...names.map((name) => `policies/${name}.yaml`),
  ...['postern.yaml', 'deploy/postern.yaml', 'deploy/kubernetes/postern.yaml'],
]

test.each(shipped)(
  '%s: a mailbox has a limit, a stranger can use up no limit for all people of a mail domain; a full limit of checks by address asks for a challenge',
  (path) => {
    const file = parse(read(fileURLToPath(new URL(`../../${path}`, import.meta.url))))
    expect(file.policies.captcha).toContainEqual({
      name: 'mailbox',
      key: '{app}:{channel}:{mailbox}:{lane}',
      sliding: '10 per 24h',
    })
    const rules: RawRule[] = [
      ...Object.values<RawRule[]>(file.policies).flat(),
      ...file.browser.rules,
    ]
    expect(rules.filter(({ key }) => key.includes('{prefix}'))).toEqual([])
    expect(file.browser.checkRules).toContainEqual({
      name: 'check-ip',
      key: '{app}:{ip}',
      sliding: '60 per 10m',
      mode: 'challenge',
      refund: 'passed',
    })
  },
)

test.each(shipped)('%s: every rule that counts one recipient counts by lane', (path) => {
  const { policies, browser } = parse(
    read(fileURLToPath(new URL(`../../${path}`, import.meta.url))),
  )
  const rules: RawRule[] = [...policies.captcha, ...policies.check, ...browser.checkRules]
  const ofRecipient = rules.filter(({ key }) => /\{to\}|\{mailbox\}/.test(key))
  expect(ofRecipient.length).toBeGreaterThan(3)
  expect(ofRecipient.filter(({ key }) => !key.includes('{lane}'))).toEqual([])
})

test.each(names)('policies/%s.yaml: no rule counts one app with another', (name) => {
  for (const { policy, rule } of rulesOf(name)) {
    // Subjects of login attempts belong to the app before they are counted, and a key belongs to one app.
    if (policy !== 'login') expect(rule.key, rule.name).toMatch(/\{app\}|\{keyId\}/)
  }
})

test('the starter only observes what it adds, but for a mailbox, a phone and the bounds of checks', () => {
  const inForce = ['mailbox', 'all-channels', 'guesses', 'check-ip']
  const added = rulesOf('starter').filter(
    ({ comment, rule }) => comment !== '' && !inForce.includes(rule.name),
  )
  expect(added.map(({ rule }) => [rule.name, rule.mode])).toEqual(
    ['unverified', 'prefix', 'spend', 'guess-budget', 'ip-short', 'ip-day'].map((one) => [
      one,
      'observe',
    ]),
  )
})

const commented = names.flatMap((name) =>
  rulesOf(name)
    .filter(({ comment }) => comment !== '')
    .map((one) => ({ name, title: `${name}: ${one.rule.name}`, ...one })),
)

test.each(commented)(
  'policies/$title is full at the number in its comment, and then does what its mode demands',
  async ({ policy, rule, comment }) => {
    const counted = rule.calendar ?? rule.lockout
    const [first = ''] = [rule.sliding ?? `${counted?.limit} per`].flat()
    const limit = Number(first.split(' ')[0])
    expect(comment).toContain(String(limit))
    let clockMs = Date.UTC(2026, 10, 22, 12)
    const observed: string[] = []
    const isOfPages = policy === pagePolicy || policy === pageCheckPolicy
    const raw: RawPolicies = withPageRules(
      { captcha: [], notice: [], check: [], ...(isOfPages ? {} : { [policy]: [rule] }) },
      {
        rules: policy === pagePolicy ? [rule] : [],
        checkRules: policy === pageCheckPolicy ? [rule] : [],
      },
    ) as RawPolicies
    const limiter = createLimiter({
      policies: raw,
      clock: () => clockMs,
      onObserved: (labels) => void observed.push(labels.rule),
    })
    const permits = rule.permits === 'price' ? 1_000 : 1
    const acquire = () => limiter.acquire(policy, fields)
    // As many at a time as the rule admits. Otherwise this would be a hundred thousand calls.
    const uses = limit / permits
    const step = uses > 1_000 ? uses : 1
    for (let used = 0; used < uses; used += step) {
      clockMs += 1
      const decision = await limiter.acquire(policy, fields, { permits: step })
      expect(decision.admitted).toBe(true)
    }
    expect(observed).toEqual([])
    const above = await acquire()
    if (rule.mode === 'observe') {
      expect(above.admitted).toBe(true)
      expect(observed).toEqual([rule.name])
    } else {
      expect(above).toMatchObject({ admitted: false, rule: rule.name })
      expect('challenge' in above).toBe(rule.mode === 'challenge')
    }
  },
)

test.each(commented.filter(({ comment }) => /wrong (codes|guesses)|failed checks/.test(comment)))(
  'policies/$title: a right code is not among the wrong ones that it counts',
  ({ rule }) => {
    const parsed = parsePolicies({ check: [rule] })
    const { cleared, givenBack } = afterPass(parsed.ok ? (parsed.policies.check ?? []) : [])
    expect([...cleared, ...givenBack]).toEqual([rule.name])
  },
)
