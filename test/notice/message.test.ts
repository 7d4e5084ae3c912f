import { expect, test } from 'vitest'
import type { FieldWord, Values } from '../../src/base/words.ts'
import { createReadMessage, type SendAsked } from '../../src/notice/message.ts'
import { createRecipientNormaliser } from '../../src/recipient/normalise-recipient.ts'

const testRecipient = '+15005550006'
const isTestRecipient = (to: string) => to === testRecipient
/** The variables of each edition. */
const editions: Record<string, Record<string, string[]>> = {
  captcha: { en: ['code', 'name'], zh: ['code'] },
  order: { en: ['name', 'order'], zh: ['order'] },
  news: { en: ['token', 'list'] },
  shout: { en: ['text'] },
  verify: { en: ['code', 'link'] },
}
const readMessage = createReadMessage({
  normaliseRecipient: createRecipientNormaliser({ countries: ['CN'] }, isTestRecipient),
  templates: {
    has: (template) => template in editions,
    isOfPlugin: (template) => template === 'shout',
    findLocale: (template, channel, wanted = 'en') =>
      channel === 'sms' && editions[template]?.[wanted] ? wanted : undefined,
    edition: (template, _, locale) => ({
      variables: new Set(editions[template]?.[locale]),
      pathVariables: new Set(template === 'news' ? ['token'] : []),
      render: () => ({ text: '' }),
    }),
    uses: (template, name) =>
      Object.values(editions[template] ?? {})
        .flat()
        .includes(name),
  },
  links: new Map([['signup', 'https://shop.example/verify']]),
  providersOf({ country, app }) {
    if (app === 'abroad') return []
    return country === 'CN' && app === 'shop' ? ['a'] : undefined
  },
  isTestRecipient,
})
const read = (
  kind: 'captcha' | 'notice',
  over: Partial<SendAsked & { scene: string }> = {},
  by: object = {},
) => {
  const template = kind === 'captcha' ? 'captcha' : 'order'
  const params: SendAsked['params'] =
    kind === 'captcha' ? { name: 'Ada' } : { name: 'Ada', order: 7 }
  return readMessage(
    kind,
    { channel: 'sms', to: '+86 138 0013 8000', template, params, ...over },
    { app: 'shop', ...by },
  )
}
const refusal = (path: string, word: FieldWord, values?: Values) => ({
  outcome: 'invalid_request',
  errors: [{ path, word, ...(values ? { values } : {}) }],
})

test('a message: one spelling of the recipient, an edition, and the variables that this edition shows', () => {
  const to = '+8613800138000'
  const params = { name: 'Ada', order: 7 }
  expect(read('notice')).toEqual({ to, country: 'CN', locale: 'en', params, providers: ['a'] })
  // A variable that only another edition shows would make the content different for the duplicate rule.
  const inChinese = { to, country: 'CN', locale: 'zh', params: { order: 7 }, providers: ['a'] }
  expect(read('notice', { locale: 'zh' })).toEqual(inChinese)
  expect(read('captcha', { locale: 'zh' })).toEqual({ ...inChinese, params: {} })
  // Postern sets these variables only for codes.
  const ofCode = { template: 'captcha', params: { code: '0042', name: 'Ada' } }
  expect(read('notice', ofCode)).toMatchObject({ params: ofCode.params })
  // A test recipient gets no message, so it needs no route.
  expect(read('notice', { to: testRecipient })).toMatchObject({ to: testRecipient, params })
})

test.each([
  [{ to: 'nobody' }, { outcome: 'invalid_recipient', because: 'no_number' }],
  [{ to: '+4915112345678' }, { outcome: 'destination_not_allowed', reason: 'country' }],
  [{ template: 'other' }, refusal('template', 'noTemplate')],
  [{ locale: 'fr' }, refusal('template', 'noVariant', { channel: 'sms' })],
  [{ params: { name: 'Ada' } }, refusal('params.order', 'needed')],
  [{ params: { name: 'Ada', order: 7, other: 1 } }, refusal('params.other', 'unused')],
])('a notice with %o is refused', (over, outcome) => {
  expect(read('notice', over)).toEqual(outcome)
})

test('no provider of the route serves the country → the destination is not allowed, because of its country', () => {
  const outcome = { outcome: 'destination_not_allowed', reason: 'country' }
  expect(read('notice', {}, { app: 'abroad' })).toEqual(outcome)
})

test('no route of this app: refused by the channel; Postern sets the variables of a code, and its template contains it', () => {
  expect(read('notice', {}, { app: 'bank' })).toMatchObject({ errors: [{ path: 'channel' }] })
  for (const name of ['code', 'minutes', 'validity']) {
    const outcome = read('captcha', { params: { name: 'Ada', [name]: '1' } })
    expect(outcome).toEqual(refusal(`params.${name}`, 'setByPostern'))
  }
  const params = { name: 'Ada', order: 7 }
  const mute = refusal('template', 'noCode')
  expect(read('captcha', { template: 'order', params })).toEqual(mute)
})

test("a plugin's template: for callers in process; for a key there is no such template", () => {
  const over = { template: 'shout', params: { text: 'Ha' } }
  expect(read('notice', over)).toEqual(refusal('template', 'noTemplate'))
  expect(read('notice', over, { isInProcess: true })).toMatchObject({ params: { text: 'Ha' } })
})

test.each(['', '.', '..', '...'])(
  '%j as part of the path of List-Unsubscribe is refused',
  (token) => {
    const news = (params: SendAsked['params']) => read('notice', { template: 'news', params })
    const wrong = refusal('params.token', 'onlyDots')
    expect(news({ token, list: 'a' })).toEqual(wrong)
    const params = { token: '..a', list: token }
    expect(news(params)).toMatchObject({ params })
  },
)

test('a link that every message of the template shows: only for scenes that have one', () => {
  const verify = { template: 'verify', params: {} }
  expect(read('captcha', { ...verify, scene: 'signup' })).toMatchObject({ params: {} })
  const none = refusal('template', 'noLink')
  for (const scene of ['login', 'constructor']) {
    expect(read('captcha', { ...verify, scene })).toEqual(none)
  }
  expect(read('captcha', { ...verify, scene: 'signup', params: { link: 'x' } })).toEqual(
    refusal('params.link', 'setByPostern'),
  )
  // A notice has no scene: the caller gives all its values.
  const params = { code: '1', link: 'https://a.example' }
  expect(read('notice', { ...verify, params })).toMatchObject({ params })
})
