import { expect, test } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'

const postern = await startPostern({
  policyFile: {
    policies: { ...noLimits, captcha: [{ name: 'recipient', key: '{to}', sliding: '1 per 1h' }] },
  },
})
/** One sample of /metrics; 0 if it is missing. */
const sample = (text: string, name: string, labels: Record<string, string>) => {
  const line = text
    .split('\n')
    .find(
      (each) =>
        each.startsWith(`${name}{`) &&
        Object.entries(labels).every(([label, value]) => each.includes(`${label}="${value}"`)),
    )
  return Number(line?.split(' ').at(-1) ?? 0)
}

test('/metrics: counters equal what callers saw (I15)', async () => {
  const send = (to: string) => postern.post('/v1/captchas', { channel: 'sms', to })
  const { body } = await send('+8613800138000')
  for (let count = 0; count < 3; count += 1) await send('+8613800138000')
  const check = { channel: 'sms', to: '+8613800138000', code: await postern.codeFor(body.id) }
  await postern.post('/v1/captchas/check', check)
  await postern.post('/v1/captchas/check', check)
  await postern.get('/nothing')

  const text = await eventually(async () => {
    const metrics = await (await fetch(`${postern.adminUrl}/metrics`)).text()
    return sample(metrics, 'postern_notices_finished_total', { state: 'sent' }) === 1 && metrics
  })
  expect(text.endsWith('\n')).toBe(true)
  const requests = (route: string, status: string) =>
    sample(text, 'postern_http_requests_total', { route, status })
  expect(requests('/v1/captchas', '202')).toBe(1)
  expect(requests('/v1/captchas', '429')).toBe(3)
  expect(requests('unknown', '404')).toBe(1)
  expect(sample(text, 'postern_accepted_total', { kind: 'captcha', channel: 'sms' })).toBe(1)
  expect(sample(text, 'postern_rejected_total', { policy: 'captcha', rule: 'recipient' })).toBe(3)
  expect(sample(text, 'postern_checks_total', { result: 'passed' })).toBe(1)
  expect(sample(text, 'postern_checks_total', { result: 'gone' })).toBe(1)
  expect(sample(text, 'postern_sends_total', { provider: 'sandbox', outcome: 'accepted' })).toBe(1)
})
