import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { createVariant } from '../../src/notice/template-variant.ts'
import { readTemplates } from '../../src/notice/templates.ts'
import { loadTemplates } from '../tools/load-templates.ts'
import { templatesFolder } from '../tools/templates-folder.ts'

const load = (files: Readonly<Record<string, string>>) => loadTemplates(templatesFolder(files))
const sms = (text: string) => load({ 't/sms.en.txt': text })

test('the default templates load, in English, German and Chinese for both channels', () => {
  const shipped = ['de', 'en', 'zh']
  const templates = loadTemplates(fileURLToPath(new URL('../../templates', import.meta.url)))
  for (const template of ['captcha', 'welcome']) {
    for (const channel of ['sms', 'email'] as const) {
      expect(templates.locales(template, channel).sort()).toEqual(shipped)
    }
  }
  for (const language of shipped) {
    const variables = [...templates.edition('captcha', 'email', language).variables]
    expect(variables.sort()).toEqual(['code', 'validity'])
  }
})

test('a channel without a text in a locale has the text of SMS; mail has none', () => {
  const templates = load({
    't/sms.en.txt': 'sms {{code}}',
    't/sms.zh.txt': '短信 {{code}}',
    't/voice.en.txt': 'call {{code}}',
    'm/email.en.txt': 'Subject: s\n\nmail {{code}}',
  })
  const textOf = (channel: 'voice' | 'telegram', locale: string) =>
    templates.render('t', channel, locale, { code: '1' }).text
  expect(textOf('voice', 'en')).toBe('call 1')
  expect(textOf('voice', 'zh')).toBe('短信 1')
  expect(textOf('telegram', 'en')).toBe('sms 1')
  expect(templates.findLocale('m', 'voice')).toBeUndefined()
  expect(templates.findLocale('t', 'email')).toBeUndefined()
  const plugin = createVariant({ text: 'own {{code}}' })
  const given = readTemplates(templatesFolder({}), { p: { sms: plugin } })
  if ('problems' in given) throw new Error(given.problems.join())
  expect(given.render('p', 'whatsapp', 'en', { code: '1' }).text).toBe('own 1')
})

describe('editions for a country', () => {
  const templates = load({
    't/sms.en.txt': 'all {{code}}',
    't/sms.en.IN.txt': 'India {{code}} {{brand}}',
    't/sms.hi.IN.txt': 'Hindi {{code}}',
    't/sms.de.txt': 'deutsch {{code}}',
  })
  const textFor = (wanted: string, country?: string) => {
    const locale = templates.findLocale('t', 'sms', wanted, country) ?? ''
    const names = [...templates.edition('t', 'sms', locale, country).variables]
    const values = Object.fromEntries(names.map((name) => [name, '1']))
    return templates.render('t', 'sms', locale, values, country).text
  }

  test.each([
    ['en', 'IN', 'India 1 1'],
    ['en', 'US', 'all 1'],
    ['en', undefined, 'all 1'],
    // The language counts first, then the country.
    ['de', 'IN', 'deutsch 1'],
    ['hi', 'IN', 'Hindi 1'],
    ['hi', 'US', 'all 1'],
    ['fr', 'IN', 'India 1 1'],
    ['', 'US', 'all 1'],
  ])('%s, number of %s → %s', (wanted, country, text) => {
    expect(textFor(wanted, country)).toBe(text)
  })

  test('a channel with a separate text in the language has no edition of SMS in it', () => {
    const both = load({
      't/sms.en.IN.txt': 'India {{code}}',
      't/sms.hi.IN.txt': 'Hindi {{code}}',
      't/voice.en.txt': 'call {{code}}',
    })
    const spoken = (locale: string) => both.render('t', 'voice', locale, { code: '1' }, 'IN').text
    expect([spoken('en'), spoken('hi')]).toEqual(['call 1', 'Hindi 1'])
  })

  test('only for one country → numbers of others have no edition; lengths and texts name the edition', () => {
    const only = load({ 't/sms.en.IN.txt': 'India {{code}}' })
    expect(only.findLocale('t', 'sms', 'en', 'IN')).toBe('en')
    expect(only.findLocale('t', 'sms', 'en', 'US')).toBeUndefined()
    expect(() => only.render('t', 'sms', 'en', { code: '1' }, 'US')).toThrow('t/sms.en')
    const code = { length: 4, ttlMs: 300_000, links: new Map() }
    expect(only.smsLengths(code)).toMatchObject([{ locale: 'en.IN', segments: 1 }])
    expect(only.smsTexts(code, () => '')).toEqual([
      { template: 't', locale: 'en.IN', country: 'IN', text: 'India 0000' },
    ])
  })
})

describe('render', () => {
  test('text takes values as they are, HTML escapes them, nothing in them is interpreted', () => {
    const templates = load({
      't/email.en.txt': 'Subject: For {{name}}\n\nDear {{name}}\n',
      't/email.en.html': '<p title="{{name}}">{{name}}</p>',
    })
    const name = `<b>"A" & 'B'</b> {{code}} $&`
    const { subject, text, html } = templates.render('t', 'email', 'en', { name })
    expect(subject).toBe(`For ${name}`)
    expect(text).toBe(`Dear ${name}`)
    const escaped = '&lt;b&gt;&quot;A&quot; &amp; &#x27;B&#x27;&lt;/b&gt; {{code}} $&amp;'
    expect(html).toBe(`<p title="${escaped}">${escaped}</p>`)
  })

  test('a missing variable throws instead of leaving a hole; an empty one and "0" are values', () => {
    const templates = sms('[{{a}}]')
    expect(() => templates.render('t', 'sms', 'en', {})).toThrow('t/sms: no value for a')
    expect(templates.render('t', 'sms', 'en', { a: '' }).text).toBe('[]')
    expect(templates.render('t', 'sms', 'en', { a: '0' }).text).toBe('[0]')
  })

  test.each([
    'if',
    'each',
    'with',
    'unless',
    'log',
    'lookup',
    'helperMissing',
    'constructor',
    'toString',
  ])('a variable named %s is a variable like any other', (name) => {
    const templates = sms(`[{{${name}}}]`)
    expect([...templates.edition('t', 'sms', 'en').variables]).toEqual([name])
    expect(templates.render('t', 'sms', 'en', { [name]: 'x' }).text).toBe('[x]')
    expect(() => templates.render('t', 'sms', 'en', {})).toThrow(`t/sms: no value for ${name}`)
  })

  test('List-Unsubscribe: values are parts of its address and cannot change where it leads', () => {
    const templates = load({
      't/email.en.txt':
        'Subject: News\nList-Unsubscribe: https://acme.test/off/{{who}}?l={{list}}\n\nHello\n',
    })
    expect([...templates.edition('t', 'email', 'en').variables].sort()).toEqual(['list', 'who'])
    const values = { who: '../a>\r\nBcc: <b@c.test>', list: 'a&b=ü' }
    expect(templates.render('t', 'email', 'en', values)).toEqual({
      subject: 'News',
      text: 'Hello',
      listUnsubscribe:
        'https://acme.test/off/..%2Fa%3E%0D%0ABcc%3A%20%3Cb%40c.test%3E?l=a%26b%3D%C3%BC',
    })
    // Dots alone would lead elsewhere in any spelling, so requests with them are refused (message.test.ts).
    expect([...(templates.edition('t', 'email', 'en').pathVariables ?? [])]).toEqual(['who'])
  })

  test.each([
    ['http://acme.test/off', /List-Unsubscribe: is one address, https:\/\/host\//],
    ['https://{{host}}/off', /List-Unsubscribe: is one address/],
    ['https://acme.test{{host}}/off', /List-Unsubscribe: is one address/],
    ['{{link}}', /List-Unsubscribe: is one address/],
    ['mailto:{{who}}@acme.test', /List-Unsubscribe: is one address/],
    ['<https://acme.test/off>', /List-Unsubscribe: is one address/],
    ['https://acme.test/off, mailto:off@acme.test', /List-Unsubscribe: is one address/],
    ['https://acme.test/ü', /List-Unsubscribe: is one address/],
  ])('List-Unsubscribe: %s is refused at the start', (link, problem) => {
    const file = `Subject: News\nList-Unsubscribe: ${link}\n\nHello\n`
    expect(() => load({ 't/email.en.txt': file })).toThrow(problem)
  })

  test.each(['Subject: {{code}}', 'Subject: News'])(
    'List-Unsubscribe: none on a code (%s)',
    (subject) => {
      const files = {
        't/email.en.txt': `${subject}\nList-Unsubscribe: mailto:off@acme.test\n\nHello\n`,
        't/email.en.html': '<p>{{code}}</p>',
      }
      expect(() => load(files)).toThrow(/A code has no subscription/)
    },
  )

  test('a variant that is not there throws', () => {
    expect(() => sms('x').render('t', 'sms', 'zh', {})).toThrow(/t\/sms\.zh/)
  })
})

describe('findLocale', () => {
  const templates = load({
    't/sms.en.txt': 'x',
    't/sms.zh.txt': 'x',
    't/sms.zh-TW.txt': 'x',
    't/sms.es.txt': 'x',
    'german/sms.de.txt': 'x',
    'german/sms.zh.txt': 'x',
  })
  test.each([
    ['zh-TW', 'zh-TW'],
    ['zh-CN', 'zh'],
    ['zh-Hans-CN', 'zh'],
    ['zh-tw', 'zh-TW'],
    ['ZH_TW', 'zh-TW'],
    ['zh-TW-x-private', 'zh-TW'],
    ['en-GB', 'en'],
    ['en-us', 'en'],
    ['es-419', 'es'],
    ['de-CH-1901', 'en'],
    ['fr', 'en'],
    ['', 'en'],
    ['-', 'en'],
    ['zh-', 'zh'],
    ['constructor', 'en'],
    [`zh${'-a'.repeat(8_000)}`, 'zh'],
    ['x'.repeat(16_000), 'en'],
    [undefined, 'en'],
  ])('%j is read in %s (RFC 4647 look-up, else the default)', (wanted, locale) => {
    expect(templates.findLocale('t', 'sms', wanted)).toBe(locale)
  })

  const nearest = (locales: string, wanted: string) =>
    load(
      Object.fromEntries(locales.split(' ').map((locale) => [`t/sms.${locale}.txt`, 'x'])),
    ).findLocale('t', 'sms', wanted)

  test.each([
    ['en zh zh-TW', 'zh-HK', 'zh-TW'],
    ['en zh zh-TW', 'zh-Hant-MO', 'zh-TW'],
    ['en zh zh-TW', 'zh-SG', 'zh'],
    ['en zh-CN zh-TW', 'zh', 'zh-CN'],
    ['en zh zh-Hant', 'zh-TW', 'zh-Hant'],
    ['en zh-HK zh-Hant zh-TW', 'zh-Hant-TW', 'zh-Hant'],
    ['en zh-HK zh-Hant zh-TW', 'zh-MO', 'zh-HK'],
    ['en zh-HK zh-TW', 'zh-Hant', 'zh-TW'],
    ['en zh', 'zh-TW', 'zh'],
    ['en no', 'nb-NO', 'no'],
    ['en nb', 'no', 'nb'],
    ['en he', 'iw', 'he'],
    ['en iw', 'he-IL', 'iw'],
    ['en id', 'in-ID', 'id'],
    ['en es-MX', 'es-AR', 'es-MX'],
    ['en es-419 es-ES', 'es-419', 'es-419'],
    ['en es-419', 'es-CO', 'es-419'],
    ['en fil', 'tl-PH', 'fil'],
    ['en sr sr-Latn', 'sr-Latn-RS', 'sr-Latn'],
    ['en sr-Latn', 'sr', 'sr-Latn'],
    ['en-GB en-US', 'en-AU', 'en-GB'],
    ['en en-GB', 'en-NZ', 'en-GB'],
    ['en en-GB', 'en-CA', 'en'],
    ['en-GB', 'en-US', 'en-GB'],
    ['en pt-BR', 'pt-PT', 'pt-BR'],
    ['en pt-BR pt-PT', 'pt-AO', 'pt-PT'],
    ['en pt pt-PT', 'pt-MZ', 'pt-PT'],
    ['en pt pt-PT', 'pt', 'pt'],
    ['en es es-419', 'es-AR', 'es-419'],
    ['en es-419 es-ES', 'es-US', 'es-419'],
    ['en es es-MX', 'es-GQ', 'es'],
    ['en es es-MX', 'es-CO', 'es-MX'],
    ['en nn', 'nb', 'en'],
    ['en no', 'nn-NO', 'no'],
    ['en nn no', 'nn', 'nn'],
    ['en zh zh-TW', 'yue-HK', 'zh-TW'],
    ['en pt-BR pt-PT', 'pt_PT.UTF-8', 'pt-PT'],
    ['en de de-AT', 'de_AT@euro', 'de-AT'],
    ['en de', ' de;q=0.8,en', 'de'],
    ['en de', 'ptbr', 'en'],
  ])(
    'of %s, a reader of %s gets %s: the same script, then the same language, then the default',
    (locales, wanted, locale) => {
      expect(nearest(locales, wanted)).toBe(locale)
    },
  )

  test('without English the default is the first variant', () => {
    expect(templates.findLocale('german', 'sms', 'fr')).toBe('de')
    expect(templates.findLocale('german', 'sms')).toBe('de')
  })

  test('a template that is not made for the channel has none', () => {
    expect(templates.findLocale('t', 'email', 'en')).toBe(undefined)
    expect(templates.findLocale('constructor', 'sms', 'en')).toBe(undefined)
  })
})

test('uses: a variable of any variant of the template, and no other', () => {
  const templates = load({
    't/sms.en.txt': '{{a}}',
    't/sms.zh.txt': '{{b}}',
    't/email.en.txt': 'Subject: {{c}}\n\nx',
    't/email.en.html': '{{d}}',
  })
  for (const name of ['a', 'b', 'c', 'd']) expect(templates.uses('t', name)).toBe(true)
  for (const name of ['e', 'constructor']) expect(templates.uses('t', name)).toBe(false)
})

describe('readTemplates', () => {
  const faults: [string, Record<string, string>, RegExp][] = [
    ['a file of another name', { 't/letter.en.txt': 'x' }, /t\/letter\.en\.txt: is not named/],
    ['no country', { 't/sms.en.XX.txt': 'x' }, /t\/sms\.en\.XX\.txt: is for XX, which is not/],
    [
      'a country of mails',
      { 't/email.en.IN.txt': 'Subject: x\n\nx' },
      /is for IN, and email has no/,
    ],
    ['a country in small letters', { 't/sms.en.in.txt': 'x' }, /t\/sms\.en\.in\.txt: is not named/],
    ['a name that is no tag', { 't/sms.zh_CN.txt': 'x' }, /t\/sms\.zh_CN\.txt: is not named/],
    ['a tag that does not exist', { 't/sms.e-n.txt': 'x' }, /t\/sms\.e-n\.txt: is not named/],
    [
      'an HTML part without text',
      { 't/email.en.html': 'x' },
      /t\/email\.en\.html: has no text part/,
    ],
    ['a mail without subject', { 't/email.en.txt': 'Hello' }, /must begin with "Subject: …"/],
    ['a block', { 't/sms.en.txt': '{{#if a}}x{{/if}}' }, /line 1: only plain/],
    ['a path', { 't/sms.en.txt': '\n\n{{a.b}}' }, /line 3: only plain/],
    ['a parent path', { 't/sms.en.txt': '{{../a}}' }, /only plain/],
    ['a helper call', { 't/sms.en.txt': '{{lookup a b}}' }, /only plain/],
    ['unescaped braces', { 't/sms.en.txt': '{{{a}}}' }, /only plain/],
    ['an ampersand', { 't/sms.en.txt': '{{&a}}' }, /only plain/],
    ['a partial', { 't/sms.en.txt': '{{> a}}' }, /only plain/],
    ['this', { 't/sms.en.txt': '{{this}}' }, /only plain/],
    ['a private value', { 't/sms.en.txt': '{{@root}}' }, /only plain/],
    ['a name no request can give', { 't/sms.en.txt': '{{first-name}}' }, /only plain/],
    ['another block', { 't/sms.en.txt': '{{#name}}x{{/name}}' }, /line 1: only plain/],
    [
      'a link inside a link',
      { 't/sms.en.txt': '{{code}}\n{{#link}}{{#link}}x{{/link}}{{/link}}' },
      /line 2: only/,
    ],
    ['a part without the link', { 't/sms.en.txt': '{{code}}{{^link}}x{{/link}}' }, /only plain/],
    [
      'an else of the link',
      { 't/sms.en.txt': '{{code}}{{#link}}{{else}}x{{/link}}' },
      /only plain/,
    ],
    [
      'a link without a code',
      { 't/sms.en.txt': '{{#link}}x{{/link}}' },
      /t\/sms\.en\.txt: \{\{#link\}\} needs \{\{code/,
    ],
    ['a text', { 't/sms.en.txt': '{{"a"}}' }, /only plain/],
    ['a named argument', { 't/sms.en.txt': '{{code size=1}}' }, /line 1: only plain/],
    ['an SMS without a text', { 't/sms.en.txt': ' \n' }, /t\/sms\.en\.txt: is empty/],
    [
      'a WebOTP line that is not the last',
      { 't/sms.en.txt': 'x\n@shop.example #{{code}}\ny' },
      /line 2: a WebOTP line must be the last one/,
    ],
    ['a WebOTP line alone', { 't/sms.en.txt': '@shop.example #{{code}}' }, /line 1: a WebOTP/],
    ['a WebOTP line of another form', { 't/sms.en.txt': 'x\n@shop.example {{code}}' }, /line 2: a/],
    [
      'a WebOTP line with more behind it',
      { 't/sms.en.txt': 'x\n@shop.example #{{code}} y' },
      /line 2: a/,
    ],
    ['a brace left open', { 't/sms.en.txt': 'x {{a' }, /t\/sms\.en\.txt: /],
  ]
  test.each(faults)('%s is refused at start with its file', (_, files, message) => {
    expect(() => load(files)).toThrow(message)
  })

  test('every problem is listed at once', () => {
    const files = { 'a/letter.txt': 'x', 'b/sms.en.txt': '{{{x}}}', 'c/email.en.txt': 'x' }
    expect(() => load(files)).toThrow(/a\/letter.*b\/sms.*c\/email/s)
  })

  test('a folder that is not there is reported', () => {
    expect(() => loadTemplates('/nowhere/at/all')).toThrow(/ENOENT/)
  })

  test('a WebOTP line at the end stays', () => {
    const { render } = sms('{{code}}\n@shop.example #{{code}}')
    expect(render('t', 'sms', 'en', { code: '42' }).text).toBe('42\n@shop.example #42')
  })

  test.each(['@Top.Shop.example #{{code}} @pay.example', '@SHOP.example #{{code}}'])(
    'a WebOTP line for a frame, or with capital letters, stays: %s',
    (line) => {
      const text = sms(`Code {{code}}\n${line}`).render('t', 'sms', 'en', { code: '42' })
      expect(text.text).toBe(`Code 42\n${line.replace('{{code}}', '42')}`)
    },
  )

  test('files as editors on Windows write them, with a byte order mark and CRLF, are read as others', () => {
    const windows = (text: string) => `\ufeff${text.replaceAll('\n', '\r\n')}`
    const templates = load({
      't/email.en.txt': windows(
        'Subject: News\nList-Unsubscribe: mailto:off@acme.test\n\nHello\nAnn\n',
      ),
      't/email.en.html': windows('<p>\nHello'),
      't/sms.en.txt': windows('{{code}}\n@shop.example #{{code}}\n'),
    })
    expect(templates.render('t', 'email', 'en', {})).toEqual({
      subject: 'News',
      listUnsubscribe: 'mailto:off@acme.test',
      text: 'Hello\nAnn',
      html: '<p>\nHello',
    })
    expect(templates.render('t', 'sms', 'en', { code: '42' }).text).toBe('42\n@shop.example #42')
  })

  test('the folder of a ConfigMap, with hidden names of other tools → only the templates in it are read', () => {
    const folder = templatesFolder({
      't/..2026_11_27/sms.en.txt': 'x',
      't/.gitkeep': '',
      '.DS_Store': 'x',
    })
    symlinkSync('..2026_11_27', join(folder, 't', '..data'))
    symlinkSync('..data/sms.en.txt', join(folder, 't', 'sms.en.txt'))
    const templates = loadTemplates(folder)
    expect(templates.names).toEqual(['t'])
    expect(templates.render('t', 'sms', 'en', {}).text).toBe('x')
  })

  test.each<BufferEncoding>(['latin1', 'utf16le'])(
    'a file in the encoding %s is refused at start, because people would get other letters',
    (encoding) => {
      const folder = templatesFolder({ 't/sms.en.txt': 'x' })
      writeFileSync(join(folder, 't/sms.de.txt'), Buffer.from('\ufeffGültig', encoding))
      expect(() => loadTemplates(folder)).toThrow(/t\/sms\.de\.txt: is not UTF-8/)
    },
  )

  test('a comment is not part of the message', () => {
    expect(sms('a{{! note }}b').render('t', 'sms', 'en', {}).text).toBe('ab')
  })
})

describe('the link of a code', () => {
  const link = 'https://shop.example/verify?a=1&b=2#postern-code=0042&id=0199'
  const files = {
    't/email.en.txt':
      'Subject: {{code}}\n\n{{code}}.\n{{#link}}\n\nOr open {{name}}:\n{{link}}\n{{/link}}\n\nBye\n',
    't/email.en.html': '<p>{{code}}\n{{#link}}\n<a href="{{link}}">open</a>\n{{/link}}\n</p>',
    't/sms.en.txt': '{{code}}{{#link}} {{link}}{{/link}}',
  }
  const { render, edition, bareLinks, showsLinks, smsTexts } = load(files)
  const values = { code: '0042', name: 'us' }

  test('there is one → its parts are shown, and in HTML only & is escaped', () => {
    expect(render('t', 'email', 'en', { ...values, link })).toEqual({
      subject: '0042',
      text: `0042.\n\nOr open us:\n${link}\n\nBye`,
      html: `<p>0042\n<a href="${link.replace(/&/g, '&amp;')}">open</a>\n</p>`,
    })
    expect(render('t', 'sms', 'en', { ...values, link }).text).toBe(`0042 ${link}`)
  })

  test('there is none → nothing of its parts is left, not even a line', () => {
    expect(render('t', 'email', 'en', values)).toEqual({
      subject: '0042',
      text: '0042.\n\nBye',
      html: '<p>0042\n</p>',
    })
    expect(render('t', 'sms', 'en', values).text).toBe('0042')
  })

  test('a variable inside is a variable of the template, the link is none', () => {
    expect([...edition('t', 'email', 'en').variables]).toEqual(['code', 'name'])
    expect(showsLinks).toBe(true)
    expect(bareLinks).toEqual([])
    expect(load({ 't/sms.en.txt': '{{code}}' }).showsLinks).toBe(false)
  })

  test('the longest link of the policy file counts in the length of an SMS', () => {
    const links = new Map([
      ['signup', 'https://shop.example/verify'],
      ['login', 'https://shop.example'],
    ])
    const [sms] = smsTexts({ length: 4, ttlMs: 1, links }, () => '')
    expect(sms?.text).toMatch(
      /^0000 https:\/\/shop\.example\/verify#postern-code=0000&id=[0-9a-f-]{36}$/,
    )
    expect(smsTexts({ length: 4, ttlMs: 1, links: new Map() }, () => '')[0]?.text).toBe('0000')
  })

  test('outside such a part → the place of each, but not where the caller gives it', () => {
    const folder = templatesFolder({
      't/email.en.txt': 'Subject: x\n\n{{code}}\n{{#link}}{{link}}{{/link}}\n{{link}}',
      't/email.en.html': '<p>\n{{code}}\n{{link}}',
      't/sms.en.txt': '{{code}} {{link}}',
      'reset/sms.en.txt': 'Set a new password: {{link}}',
    })
    expect(loadTemplates(folder).bareLinks).toEqual(
      ['email.en.txt:5', 'email.en.html:3', 'sms.en.txt:1'].map((place) =>
        join(folder, 't', place),
      ),
    )
  })

  test('HTML: a link of the caller can’t leave its attribute', () => {
    const { render } = load({
      'r/email.en.txt': 'Subject: x\n\n{{link}}',
      'r/email.en.html': '<a href={{link}}>',
    })
    const html = (link: string) => render('r', 'email', 'en', { link }).html
    expect(html('x onclick=a')).toBe('<a href=x onclick&#x3D;a>')
    expect(html('x"><b>')).toBe('<a href=x&quot;&gt;&lt;b&gt;>')
  })
})
