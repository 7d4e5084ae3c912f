import { describe, expect, test, vi } from 'vitest'
import {
  createProviderOrder,
  type RouteRule,
  servingProviders,
} from '../../src/delivery/provider-order.ts'

const both = ['sms', 'email']
const providers = new Map(
  ['a', 'b', 'c']
    .map((name) => [name, { name, channels: both }] as const)
    .concat([['mail', { name: 'mail', channels: ['email'] }]]),
)

function namesOf(rules: RouteRule[], notice: object = {}): string[] {
  const providersFor = createProviderOrder({ sms: rules, email: [] }, providers)
  const asked = { channel: 'sms', recipient: '+8613800138000', template: 'captcha', app: 'shop' }
  return providersFor({ ...asked, ...notice } as Parameters<typeof providersFor>[0]).map(
    ({ name }) => name,
  )
}

const use = (...names: string[]) => names.map((provider) => ({ provider }))

describe('match', () => {
  const rules: RouteRule[] = [
    { match: { country: ['CN'], template: ['captcha'] }, use: use('a') },
    { match: { app: ['bank'] }, use: use('b') },
    { match: {}, use: use('c', 'a') },
  ]

  test.for([
    ['country and template fit: the first rule', {}, ['a']],
    ['another template: the rule behind', { template: 'welcome' }, ['c', 'a']],
    ['another country: the rule behind', { recipient: '+4915112345678' }, ['c', 'a']],
    ['another country, an app that fits', { recipient: '+4915112345678', app: 'bank' }, ['b']],
  ] as const)('%s', ([, notice, expected]) => {
    expect(namesOf(rules, notice)).toEqual(expected)
  })

  test('a provider that does not serve the country is left out, and the next one is called', () => {
    const serves = (name: string, country: string) => name !== 'a' || country === 'DE'
    const fallback = { match: {}, use: use('a', 'b') }
    const providersFor = createProviderOrder(
      { sms: [fallback], email: [fallback] },
      providers,
      serves,
    )
    const to = (recipient: string, channel: 'sms' | 'email' = 'sms') =>
      providersFor({ channel, recipient, template: 'captcha', app: 'shop' }).map(({ name }) => name)
    expect(to('+4915112345678')).toEqual(['a', 'b'])
    expect(to('+8613800138000')).toEqual(['b'])
    expect(to('ada@acme.test', 'email')).toEqual(['b'])
    const asked = { channel: 'sms', template: 'captcha', app: 'shop', country: 'CN' } as const
    const isEnabled = (name: string) => name !== 'off'
    const servingOf = (...names: string[]) =>
      servingProviders({ sms: [{ match: {}, use: use(...names) }] }, asked, serves, isEnabled)
    expect([servingOf('a', 'b'), servingOf('a')]).toEqual([['b'], []])
    expect(servingProviders({ sms: [] }, asked, serves, isEnabled)).toBeUndefined()
    expect([servingOf('off', 'b'), servingOf('off')]).toEqual([['b'], undefined])
  })

  test('no rule fits: no provider', () => {
    expect(namesOf([{ match: { country: ['DE'] }, use: use('a') }])).toEqual([])
    expect(namesOf([], { channel: 'email', recipient: 'a@b.test' })).toEqual([])
  })

  test('a provider that does not carry the channel is left out', () => {
    expect(namesOf([{ match: {}, use: use('mail', 'a') }])).toEqual(['a'])
  })
})

describe('weights', () => {
  const weighted: RouteRule[] = [
    {
      match: {},
      use: [
        { provider: 'c', weight: 0 },
        { provider: 'a', weight: 3 },
        { provider: 'b', weight: 1 },
      ],
    },
  ]

  test('3 to 1: three of four messages go to the first, and weight 0 is only the reserve', () => {
    const counts = { a: 0, b: 0, c: 0 }
    let step = 0
    // Evenly spread draws make exact shares.
    vi.spyOn(Math, 'random').mockImplementation(() => (step++ % 400) / 400 + 0.00125)
    for (let index = 0; index < 400; index++) {
      step = index
      const order = namesOf(weighted)
      expect(order).toHaveLength(3)
      expect(order.at(-1)).toBe('c')
      counts[order[0] as keyof typeof counts]++
    }
    expect(counts).toEqual({ a: 300, b: 100, c: 0 })
  })
})
