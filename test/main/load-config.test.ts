import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/main/load-config.ts'
import { noLimits, posternEnv } from '../support/postern.ts'

/** The problems of a policy file with these sections, without file names and lines. */
function problemsOf(sections: Record<string, unknown>): string[] {
  const nowhere = {
    redis: { url: 'redis://localhost' },
    database: { url: 'postgresql://localhost' },
  }
  const env = posternEnv({
    policyFile: { policies: noLimits, ...sections },
    ...(nowhere as unknown as Pick<Parameters<typeof posternEnv>[0], 'redis' | 'database'>),
  })
  const loaded = loadConfig(env)
  return loaded.ok ? [] : loaded.problems.map((problem) => problem.replace(/^.*\.yaml:\d+: /, ''))
}

const sandbox = { kind: 'sandbox' }
const aliyun = {
  kind: 'aliyun',
  accessKeyId: 'id',
  accessKeySecret: 'secret',
  signName: 'Acme',
  templates: { nowhere: { zh: 'SMS_1' } },
}
const routes = { sms: [{ use: ['phone'] }], email: [] }

describe('what can be known at start is said at start', () => {
  test.for([
    [
      'a good file',
      { providers: { phone: { ...sandbox, pace: '5 per 1s', quotas: '1 per 60s' } }, routes },
      [],
    ],
    [
      'a pace and quotas that are none',
      { providers: { phone: { ...sandbox, pace: 'fast', quotas: ['1 per 60s', 'few'] } }, routes },
      [
        /^providers\.phone\.pace: "fast" is not a quota/,
        /^providers\.phone\.quotas: .*"few"|expected/,
      ],
    ],
    [
      'weights beside plain names',
      {
        providers: { phone: sandbox },
        routes: { sms: [{ use: ['phone', { provider: 'phone', weight: 1 }] }], email: [] },
      },
      [/^routes\.sms\.0\.use/],
    ],
    [
      'a provider that does not carry the channel',
      {
        providers: { phone: { ...aliyun, templates: {} } },
        routes: { sms: [], email: [{ use: ['phone'] }] },
      },
      [/^routes\.email\.0\.use: provider "phone" carries no email/],
    ],
    [
      "a template of a provider's settings, or of a route, that is not there",
      {
        providers: { phone: aliyun },
        routes: { sms: [{ match: { template: 'lost' }, use: ['phone'] }], email: [] },
      },
      [
        /^providers\.phone\.templates: there is no template "nowhere"/,
        /^routes\.sms\.0\.match\.template: there is no template "lost"/,
      ],
    ],
  ] as [string, Record<string, unknown>, RegExp[]][])('%s', ([, sections, expected]) => {
    const problems = problemsOf(sections)
    expect(problems).toHaveLength(expected.length)
    expected.forEach((pattern, index) => {
      expect(problems[index]).toMatch(pattern)
    })
  })
})
