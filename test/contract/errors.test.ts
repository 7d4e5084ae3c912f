/** The catalogue of errors compared with docs/http.md in both directions, and with the answers of a running API. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { problems } from '../../src/base/problems.ts'
import { languages, type Words, words } from '../../src/base/words.ts'
import { startPostern } from '../tools/postern.ts'

const docs = readFileSync(new URL('../../docs/http.md', import.meta.url), 'utf8')

const registered: Record<string, string> = {
  limited: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  locked: 'https://iana.org/assignments/http-problem-types#abnormal-usage-detected',
}

test('docs/http.md has every code of the catalogue with its status, and no other', () => {
  const rows = [...docs.matchAll(/^\| `(\w+)` \| (\d{3}) \|/gm)]
  const documented = rows.map(([, code, status]) => `${code} ${status}`)
  const catalogue = Object.entries(problems).map(([code, { status }]) => `${code} ${status}`)
  expect(documented.sort()).toEqual(catalogue.sort())
})

test('every error that docs/http.md shows is one the catalogue would give', () => {
  const shown = [...docs.matchAll(/^\{"type":"(?:urn|https):.*\}$/gm)].map(([line]) =>
    JSON.parse(line),
  )
  expect(shown.length).toBeGreaterThanOrEqual(5)
  for (const { type, title, status, code, detail } of shown) {
    const known = problems[code as keyof typeof problems]
    const text = words.en.problems[code as keyof typeof problems]
    expect({ type, title, status }).toEqual({
      type: registered[code] ?? `urn:postern:problem:${code}`,
      title: text.title,
      status: known.status,
    })
    // A wrong code has the tries that are left.
    const isOfCatalogue = detail.replace(/\d+ (seconds|minutes)/, '{time}') === text.detail
    expect(isOfCatalogue || code === 'code_mismatch', detail).toBe(true)
  }
})

test('every error has a detail in every language, and none a full stop too few', () => {
  const detailsIn = ({ problems, details }: Words) => [
    ...Object.values(problems).map(({ detail }) => detail),
    ...Object.values(details).flatMap((text) =>
      Object.values(typeof text === 'string' ? [text] : text),
    ),
  ]
  for (const language of languages) {
    for (const text of detailsIn(words[language])) expect(text).toMatch(/[.。]$/)
  }
  for (const text of detailsIn(words.zh)) expect(text).toMatch(/[\u4e00-\u9fff].*。$/)
})

test('a running API refuses in the order and with the members that docs/http.md names', async () => {
  const postern = await startPostern({ roles: { api: true, worker: false } })
  const send = { channel: 'sms', to: '+8613800138000' }
  const order: [string, Promise<{ status: number; body: { code: string } }>][] = [
    ['not_found', postern.post('/v1/nowhere', undefined, { key: null })],
    ['method_not_allowed', postern.get('/v1/captchas', { key: null })],
    ['unauthorized', postern.post('/v1/captchas', '{', { key: null })],
    ['invalid_request', postern.post('/v1/captchas', { ...send, to: 'x', text: 'hi' })],
    ['invalid_recipient', postern.post('/v1/captchas', { ...send, to: '110', template: 'none' })],
    ['invalid_request', postern.post('/v1/captchas', { ...send, template: 'none' })],
  ]
  for (const [code, reply] of order) expect((await reply).body.code).toBe(code)

  expect((await postern.post('/v1/captchas', send)).status).toBe(202)
  const { body, headers } = await postern.post('/v1/captchas', send)
  const [, more = ''] = /^\| `limited` \|.*\| (.*) \|$/m.exec(docs) ?? []
  const [members = '', named = ''] = more.split('; headers ')
  const names = (text: string) =>
    [...text.matchAll(/`([\w-]+)`/g)].map(([, name]) => name as string)
  expect(Object.keys(body).sort()).toEqual(
    ['type', 'title', 'status', 'detail', 'code', ...names(members)].sort(),
  )
  expect(names(named)).toHaveLength(3)
  for (const name of names(named)) expect(headers.get(name)).not.toBeNull()
  // Sent twice, it would read "60, 60".
  expect(headers.get('Retry-After')).toMatch(/^\d+$/)
})

test('the refusal that docs/http.md shows has the headers of a real one', async () => {
  const [, shown = ''] = /^(Retry-After: 60\n[\s\S]*?)\n\n/m.exec(docs) ?? []
  const postern = await startPostern({ roles: { api: true, worker: false } })
  const send = { channel: 'sms', to: '+8613800138000' }
  expect((await postern.post('/v1/captchas', send)).status).toBe(202)
  const { status, headers } = await postern.post('/v1/captchas', send)
  expect(status).toBe(429)
  const names = ['Retry-After', 'RateLimit-Policy', 'RateLimit']
  const real = names.map((name) => `${name}: ${headers.get(name)}`).join('\n')
  // A second may have passed before the repeat.
  const withoutWait = (text: string) => text.replaceAll(/(After: |t=)\d+/g, '$1')
  expect(withoutWait(shown)).toBe(withoutWait(real))
})
