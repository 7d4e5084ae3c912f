import { expect, test } from 'vitest'
import { createMeter } from '../../src/base/meter.ts'
import { rulesMetrics } from '../../src/rules/metrics.ts'

test('rules of a reloaded policy file stand at 0, and those that were there keep their count', async () => {
  const { rejected, startRulesAtZero } = rulesMetrics(createMeter('api'))
  startRulesAtZero({ captcha: [{ name: 'ip' }] })
  rejected.inc({ policy: 'captcha', rule: 'ip' })
  startRulesAtZero({ captcha: [{ name: 'ip' }, { name: 'country' }] })
  expect((await rejected.get()).values.map(({ labels, value }) => [labels.rule, value])).toEqual([
    ['ip', 1],
    ['country', 0],
  ])
})
