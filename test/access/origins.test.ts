import { describe, expect, test } from 'vitest'
import { parseOrigin, parseOrigins } from '../../src/access/origins.ts'

describe('an origin', () => {
  test.each([
    ['https://shop.example'],
    ['https://shop.example:8443'],
    ['http://localhost:5173'],
    ['http://127.0.0.1:3000'],
    ['http://[::1]:3000'],
    ['https://xn--bcher-kva.example'],
    ['https://my_shop.example'],
  ])('%s stays as it is', (text) => {
    expect(parseOrigin(text)).toEqual({ ok: true, origin: text })
  })

  test.each([
    ['HTTPS://Shop.Example', 'https://shop.example'],
    ['https://shop.example:443', 'https://shop.example'],
    ['http://shop.example:80', 'http://shop.example'],
    ['https://shop.example:', 'https://shop.example'],
    ['https://bücher.example', 'https://xn--bcher-kva.example'],
    ['https://购物.example', 'https://xn--g2xx48c.example'],
    ['https://2130706433', 'https://127.0.0.1'],
    ['https://[0:0:0:0:0:0:0:1]', 'https://[::1]'],
  ])('%s becomes what a browser sends: %s', (text, origin) => {
    expect(parseOrigin(text)).toEqual({ ok: true, origin })
  })

  test.each([
    ['null', /sandboxed page/],
    ['', /no scheme/],
    ['*', /no scheme/],
    ['shop.example', /no scheme/],
    ['//shop.example', /no scheme/],
    ['localhost:3000', /no scheme/],
    ['javascript:alert(1)', /no scheme/],
    ['file:///etc/passwd', /other than https/],
    ['chrome-extension://abcdef', /other than https/],
    ['ftp://shop.example', /other than https/],
    ['https://', /no host/],
    ['https://:8443', /no host/],
    ['https://shop.example:99999', /no host/],
    ['https://shop.example:port', /no host/],
    ['https://shop..%00.example', /no host/],
    ['https://a.example,b.example', /no host/],
    ['https://a.example,https://b.example', /more than scheme, host and port/],
    ['https://shop.example/', /more than scheme, host and port/],
    ['https://shop.example/login', /more than scheme, host and port/],
    ['https://shop.example?x', /more than scheme, host and port/],
    ['https://shop.example#x', /more than scheme, host and port/],
    ['https://shop.example\\login', /more than scheme, host and port/],
    ['https://ada:secret@shop.example', /user or password/],
    ['https://ada@shop.example', /user or password/],
    ['https://*.shop.example', /wildcard/],
    ['https://*', /wildcard/],
    ['https://shop.example ', /space/],
    ['https://shop.\nexample', /space/],
    ['https://shop.example\u0000', /space/],
    [' https://shop.example', /no scheme/],
    [`https://${'x'.repeat(300)}.example`, /longer/],
  ])('%j is none, and the message has the reason', (text, message) => {
    expect(parseOrigin(text)).toEqual({ ok: false, message: expect.stringMatching(message) })
  })
})

describe('the origins of a key', () => {
  const many = (count: number) => Array.from({ length: count }, (_, at) => `https://a${at}.example`)

  test('each once, with what was respelled', () => {
    expect(
      parseOrigins(['https://A.example', 'https://a.example', 'https://b.example:443']),
    ).toEqual({
      ok: true,
      origins: ['https://a.example', 'https://b.example'],
      respelled: [
        { from: 'https://A.example', to: 'https://a.example' },
        { from: 'https://b.example:443', to: 'https://b.example' },
      ],
    })
  })

  test('fifty are taken, 51 and 300 are not', () => {
    expect(parseOrigins(many(50))).toMatchObject({ ok: true })
    for (const count of [51, 300]) {
      expect(parseOrigins(many(count))).toEqual({
        ok: false,
        problems: [`A key has at most 50 origins, not ${count}.`],
      })
    }
  })

  test('every wrong one is named at once', () => {
    const parsed = parseOrigins(['null', 'https://a.example', 'shop.example'])
    expect(parsed).toEqual({
      ok: false,
      problems: [expect.stringContaining('"null"'), expect.stringContaining('"shop.example"')],
    })
  })
})
