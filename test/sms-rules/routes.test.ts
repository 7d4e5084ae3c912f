import { expect, test } from 'vitest'
import { checkRoutes, paperwork } from '../../src/sms-rules/index.ts'

const text = { template: 'captcha', locale: 'en', text: 'ACME: 4711 is your code' }
const route = { provider: 'phone', sender: 'ACME', countries: ['AU', 'IN'], texts: [text] }

test('checkRoutes: each finding has its provider, country and text, and two same routes have each once', () => {
  const found = checkRoutes([route, route], { phone: { AU: { registered: ['ACME'] } } })
  expect(found.map(({ provider, country, rule, of }) => ({ provider, country, rule, of }))).toEqual(
    [
      { provider: 'phone', country: 'IN', rule: 'sender.alphanumeric', of: undefined },
      {
        ...{ provider: 'phone', country: 'IN', rule: 'template' },
        of: { template: 'captcha', locale: 'en' },
      },
    ],
  )
  expect(checkRoutes([{ ...route, sender: undefined, texts: [] }], {})).toEqual([])
})

test('checkRoutes: a list of senders decides, and without it the id of the business counts', () => {
  const rulesWith = (filed: object) =>
    checkRoutes([{ ...route, countries: ['IN'] }], { phone: { IN: filed } }).map(({ rule }) => rule)
  const templates = { captcha: { text: 'ACME: {#numeric#} is your code' } }
  expect(rulesWith({ entity: '1', templates })).toEqual([])
  expect(rulesWith({ entity: '1', registered: ['OTHER'], templates })).toEqual([
    'sender.alphanumeric',
  ])
  expect(rulesWith({ registered: ['ACME'], templates: { toString: {} } })).toEqual(['template'])
})

test('checkRoutes: where no registration is named, its lack is a warning; where others are, an error', () => {
  const severities = (filed: object) =>
    checkRoutes([{ ...route, countries: ['IN'] }], { phone: filed } as never).map(
      ({ severity }) => severity,
    )
  expect(severities({})).toEqual(['warning', 'warning'])
  expect(severities({ IN: { registered: ['OTHER'] } })).toEqual(['error', 'error'])
})

test('checkRoutes, paperwork: a number is registered however it is written, and another number is no help', () => {
  const us = { provider: 'phone', sender: '+12125550123', countries: ['US'], texts: [] }
  const filed = (number: string) => ({ phone: { US: { registered: [number] } } })
  expect(checkRoutes([us], filed('1 (212) 555-0123'))).toEqual([])
  expect(checkRoutes([us], filed('12125550124'))).toHaveLength(1)
  expect(paperwork([us], filed('12125550123'))).toMatch(/filed {4}sender/)
  expect(paperwork([us], filed('12125550124'))).toMatch(/missing {2}sender {4}10DLC campaign/)
})

test('paperwork: only the registers of the kind of sender that the provider has', () => {
  const report = (sender?: string) =>
    paperwork([{ provider: 'phone', sender, countries: ['US'] }], {})
  expect(report()).toMatch(/10DLC.*Toll-free.*Short code/s)
  expect(report('+12125550123')).toMatch(/10DLC/)
  expect(report('+12125550123')).not.toMatch(/Toll-free|Short code/)
  expect(report('+18885550123')).not.toMatch(/10DLC|Short code/)
  expect(report('72345')).not.toMatch(/10DLC|Toll-free/)
})

test('paperwork: filed and missing by country, where to file it, each country and provider once', () => {
  const routes = [
    { provider: 'phone', countries: ['IN', 'AQ'] },
    { provider: 'phone', countries: ['IN'] },
    { provider: 'other', countries: ['DE'] },
  ]
  const report = paperwork(routes, {
    phone: { IN: { entity: '1001', templates: { captcha: {} } } },
  })
  expect(report.split('\n\n')).toEqual([
    'AQ (AQ), phone\n  no rules are known',
    expect.stringMatching(/^Germany \(DE\), other\n/),
    expect.stringMatching(
      /^India \(IN\), phone\n {2}filed {4}business {2}1001\n {2}missing {2}sender {4}Header on a DLT portal, https:.*\n {2}filed {4}template {2}captcha$/,
    ),
  ])
})
