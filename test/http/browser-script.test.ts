import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { languages } from '../../src/i18n/languages.ts'
import { startPostern } from '../tools/postern.ts'
import { scriptPath } from '../web/field-page.ts'
import { rawHttp } from './raw-http.ts'

const start = () => startPostern({ roles: { api: true, worker: false } })
const file = readFileSync(new URL('../../web/dist/postern-code.js', import.meta.url))

test('the code field under its version: for any page, for ever, and no more than 16 kB', async () => {
  const { url } = await start()
  const get = async (encoding: string, method = 'GET') => {
    const path = new URL(`${url}${scriptPath}`).pathname
    const { status, head } = await rawHttp(
      url,
      `${method} ${path} HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\nAccept-Encoding: ${encoding}\r\nConnection: close\r\n\r\n`,
    )
    const lines = head.split('\r\n').slice(1)
    const headers = Object.fromEntries(lines.map((line) => line.toLowerCase().split(': ')))
    return { status, headers }
  }
  for (const method of ['GET', 'HEAD']) {
    const { status, headers } = await get('br, gzip', method)
    expect({ status, ...headers }).toMatchObject({
      status: 200,
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
      'content-encoding': 'gzip',
      vary: 'accept-encoding',
    })
    expect(Number(headers['content-length'])).toBeLessThan(16_000)
  }
  expect((await get('identity')).headers['content-encoding']).toBeUndefined()
  const reply = await fetch(`${url}${scriptPath}`)
  expect(Buffer.from(await reply.arrayBuffer()).equals(file)).toBe(true)
})

test('the texts of the field in each language: for any page, for an hour', async () => {
  const { url } = await start()
  for (const [language, { field }] of Object.entries(languages)) {
    const reply = await fetch(`${url}/browser/postern-code.${language}.json`)
    expect(Object.fromEntries(reply.headers)).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'public, max-age=3600',
      'x-content-type-options': 'nosniff',
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
      'content-encoding': 'gzip',
    })
    expect(await reply.json()).toEqual(field)
  }
})

test('another method, another version, what lies beside it', async () => {
  const postern = await start()
  const posted = await postern.post(scriptPath, {})
  expect(posted.status).toBe(405)
  expect(posted.headers.get('allow')).toBe('GET, HEAD')
  expect(posted.body).toMatchObject({ code: 'method_not_allowed' })
  for (const path of [
    '/browser/postern-code.0.0.0.js',
    '/browser/postern-code.js',
    '/browser/postern-code.de.js',
    '/browser/postern-code.fr.json',
    '/browser/postern-code.constructor.json',
    '/browser/',
    `${scriptPath}/`,
    scriptPath.replace('code', 'Code'),
    `/browser/..%2fpackage.json`,
  ]) {
    expect({ path, status: (await postern.get(path, { key: null })).status }).toEqual({
      path,
      status: 404,
    })
  }
})
