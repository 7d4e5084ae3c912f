import { readFileSync } from 'node:fs'
import type { Browser, Route } from 'playwright-core'
import { languages } from '../../src/i18n/languages.ts'
import { repositoryRoot } from '../tools/source-files.ts'

const script = readFileSync(`${repositoryRoot}web/dist/postern-code.js`, 'utf8')

export interface Asked {
  path: string
  key: string | undefined
  body: Record<'channel' | 'to' | 'scene', string> &
    Partial<Record<'code' | 'id' | 'locale' | 'known', string>>
}

/** `lost`: the request arrives, and its answer does not. */
type Answer = { status: number; body: object } | 'lost'

let count = 0

/** Ids are UUIDs of version 7, which begin with their time. */
function newId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(++count).padStart(12, '0')}`
}

export const newCode = (more: object = {}): Answer => ({
  status: 202,
  body: {
    id: newId(),
    channel: 'sms',
    to: '+8613****8000',
    scene: 'signup',
    state: 'pending',
    expiresAt: new Date(Date.now() + 300_000).toISOString(),
    resendAt: new Date(Date.now()).toISOString(),
    codeLength: 4,
    ...more,
  },
})

export const pass = 'header.e30.signature'
export const passed = {
  status: 200,
  body: { verified: true, id: newId(), scene: 'signup', verifiedAt: '2026-11-27T00:00:00Z', pass },
}
export const refused = (status: number, code: string, more: object = {}): Answer => ({
  status,
  body: { code, ...more },
})

export type Service = (asked: Asked) => Answer | Promise<Answer>

/** Answers a request for the texts of a language. */
export type TextService = (route: Route, language: string) => Promise<void>

export const textsAtOnce: TextService = (route, language) =>
  route.fulfill({ json: languages[language as keyof typeof languages].field })

/**
 * Opens pages with the code field, before a service that answers by a function of the test. Needs no server. All pages are one tab,
 * because each new one takes a third of a second.
 */
export async function createMockedPages(browser: Browser) {
  const context = await browser.newContext()
  const page = await context.newPage()
  let asked: Asked[] = []
  let html = ''
  let service: Service = () => 'lost'
  let textService = textsAtOnce
  await context.route('http://localhost/**', async (route) => {
    const request = route.request()
    const { pathname } = new URL(request.url())
    if (pathname === '/page') return route.fulfill({ contentType: 'text/html', body: html })
    const [, language] = /^\/browser\/postern-code\.(\w+)\.json$/.exec(pathname) ?? []
    if (language) return textService(route, language)
    if (request.method() !== 'POST') return route.abort()
    const key = request.headers()['idempotency-key']
    const one = { path: pathname, key, body: request.postDataJSON() }
    asked.push(one)
    const answer = await service(one)
    // The page may have been left meanwhile.
    const answered =
      answer === 'lost'
        ? route.abort()
        : route.fulfill({ status: answer.status, json: answer.body })
    return answered.catch(() => {})
  })

  return async function open(
    body: string,
    answers: Service,
    { lang = 'en', texts = textsAtOnce }: { lang?: string; texts?: TextService } = {},
  ) {
    if (html) await page.evaluate('sessionStorage.clear(); localStorage.clear()')
    await page.goto('about:blank')
    asked = []
    service = answers
    textService = texts
    html = `<!doctype html><html lang="${lang}"><meta charset="utf-8"><title>page</title><body>${body}<script type="module">${script}</script>`
    await page.goto('http://localhost/page')
    return { page, asked }
  }
}

export const field = (attributes = '', scene = 'signup') =>
  `<postern-code key="ppk_x" src="http://localhost" scene="${scene}" ${attributes}></postern-code>`
