/**
 * The demo page, `GET /` of `npm run demo`: web/demo and the data that it reads. It runs at the API port of the demo and
 * never in production.
 *
 * The page is only for people at this machine. So every path answers only on loopback and under a loopback name. The name
 * stops DNS rebinding, where a foreign name leads to this machine. A change needs a POST in JSON whose origin is the page,
 * because forms and scripts of other sites have another origin or none.
 */
import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import express, {
  type ErrorRequestHandler,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
  type Router,
} from 'express'
import { ownPackage } from '../base/command-line.ts'
import {
  brandedStyle,
  createFixedAnswer,
  logo,
  protectOwnPages,
  readWebFile,
} from '../base/own-pages.ts'
import { preferredLanguage } from '../base/preferred-language.ts'
import { isLanguage, type Language, languageName, languages, words } from '../base/words.ts'
import { sessionHeader } from '../console/door.ts'
import { isLocalCaller } from '../http/local-caller.ts'
import { viewOf } from '../http/notice-reads.ts'
import type { Shared } from '../main/shared.ts'
import { createConsoleLinks } from './console-links.ts'
import type { DecisionWatch } from './decision-watch.ts'
import { reserveName, switchableIn } from './demo-config.ts'
import type { WorkerProcess } from './worker-process.ts'

const app = 'default'

export interface DemoPage {
  shared: Shared
  worker: Pick<WorkerProcess, 'state' | 'kill'>
  watch: DecisionWatch
  /** A publishable key for pages at this port. */
  keyFor: (port: number) => Promise<string>
  /** The port of the console. */
  adminPort: () => Promise<string>
  /** The server of the page checks passes with this key. */
  secretKey: string
}

/** Throws if the script of the page is not built. */
export function createDemoPage(page: DemoPage): Router {
  const { shared, worker, watch } = page
  const { notices, outbox } = shared.stores
  const consoleLinks = createConsoleLinks(shared)
  const switchable = switchableIn(shared.config.file)
  const router = express.Router()
  const local: RequestHandler[] = [onlyHere, protectOwnPages, notKept]

  router.get('/', local, async (request: Request, response: Response) => {
    const key = await page.keyFor(request.socket.localPort ?? 0)
    const values = { key, src: originOf(request) }
    response
      .vary('Accept-Language')
      .type('html')
      .send(render(languageOf(request), values))
  })
  router.use('/docs', (_request: Request, response: Response, next: NextFunction) => {
    response.locals.home = '/'
    next()
  })
  for (const [path, content] of filesOfPage()) {
    const send = createFixedAnswer(content)
    router.get(path, local, (request: Request, response: Response) =>
      send(request, response.type(extname(path))),
    )
  }

  router.get('/demo/state', local, async (_request: Request, response: Response) => {
    const [messages, found, decided, isOff] = await Promise.all([
      outbox?.list({ limit: 12 }) ?? [],
      notices.search({ app, limit: 8 }),
      watch.look(),
      switchable ? outbox?.isOff(switchable) : undefined,
    ])
    response.json({
      nowMs: Date.now(),
      worker: worker.state(),
      provider: switchable ? { name: switchable, reserve: reserveName, isOff } : null,
      messages,
      notices: found.items.map(viewOf),
      ...decided,
    })
  })

  const control = (path: string, act: (body: Record<string, unknown>) => Promise<unknown>) =>
    router.post(
      path,
      local,
      fromOwnPage,
      express.json({ limit: '8kb' }),
      async (request: Request, response: Response) => {
        response.json((await act(request.body)) ?? {})
      },
    )
  control('/demo/provider', async ({ isOff }) => {
    if (typeof isOff !== 'boolean') throw badRequest('isOff must be true or false')
    if (switchable) await outbox?.[isOff ? 'switchOff' : 'switchOn'](switchable)
  })
  control('/demo/kill-worker', () => worker.kill())
  control('/demo/start-over', () => watch.forget())
  control('/demo/console', async () => {
    const { followed } = await watch.look()
    return { path: `/demo/console/${consoleLinks.create(followed)}` }
  })
  router.get('/demo/console/:ticket', local, async (request: Request, response: Response) => {
    const opened = await consoleLinks.use(String(request.params.ticket))
    if (!opened) return response.status(410).type('text').send(usedUp)
    // Browsers share cookies between all ports of a host.
    response
      .append('set-cookie', sessionHeader(request, opened.token))
      .redirect(303, `http://${request.hostname}:${await page.adminPort()}${opened.page}`)
  })
  router.post('/demo/sign-up', local, fromOwnPage, express.json({ limit: '8kb' }), signUp)
  router.use(failed)
  return router

  /** Handles the form as the server of a shop would. */
  async function signUp(request: Request, response: Response): Promise<void> {
    const { pass, channel, to } = request.body
    // The address of the socket, not the name in the request: this call contains the secret key.
    const { localAddress = '', localPort } = request.socket
    const host = localAddress.includes('.') ? localAddress.replace(/^.*:/, '') : `[${localAddress}]`
    const answer = await fetch(`http://${host}:${localPort}/v1/passes/verify`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${page.secretKey}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ pass, channel, to }),
    })
    response.status(answer.status).json(await answer.json())
  }
}

const badRequest = (message: string) => Object.assign(new Error(message), { status: 400 })

/** Answers errors with a text for people. The script of the page tries again. */
const failed: ErrorRequestHandler = (error, request, response, _next) => {
  const { status = 503 } = error as { status?: number }
  response.status(status)
  if (request.path === '/') response.type('text').send(notNow)
  else response.json({ detail: status < 500 ? String(error.message) : 'Not now.' })
}

/** A text in every language, for a reader whose language is not known. */
const inAll = (textOf: (ofLanguage: (typeof words)[Language]) => string) =>
  languages.map((language) => `${textOf(words[language])}\n`).join('')

const notNow = inAll(({ demo }) => demo.notNow)
const usedUp = inAll(({ demo }) => demo.usedUp)
const notLocal = inAll(({ details }) => details.notLocal)

const originOf = ({ headers }: Request) => `http://${headers.host}`

const onlyHere: RequestHandler = (request, response, next) => {
  if (isLocalCaller(request)) return next()
  response.status(403).type('text').send(notLocal)
}

const fromOwnPage: RequestHandler = (request, response, next) => {
  if (request.headers.origin === originOf(request) && request.is('json')) return next()
  response.status(403).type('text').send('Only the demo page may do this.\n')
}

const notKept: RequestHandler = (_request, response, next) => {
  response.setHeader('cache-control', 'no-store')
  next()
}

const filesOfPage = (): [path: string, content: string][] => [
  ['/demo/page.js', readWebFile('dist/demo-page.js').toString()],
  ['/demo/page.css', brandedStyle('demo/page.css', 'demo/devices.css', 'demo/limits.css')],
  ['/demo/postern.svg', logo],
]

function languageOf({ query, headers }: Request): Language {
  if (isLanguage(query.lang)) return query.lang
  return preferredLanguage(headers['accept-language'])
}

/** Replaces `{name}` by a value or by a text of the language. No value comes from a caller. */
function render(language: Language, values: Readonly<Record<string, string>>): string {
  const named = languages.map((each) => [each, languageName(each)] as const)
  const all: Readonly<Record<string, string>> = {
    ...words[language].demo,
    ...values,
    version: ownPackage.version,
    guideFolder: hasGuide(language) ? `${language}/` : '',
    languageLinks: named
      .filter(([each]) => each !== language)
      .map(([each, name]) => `<a href="?lang=${each}" hreflang="${each}">${name}</a>`)
      .join('\n        '),
    languageOptions: named
      .map(([each, name]) => `<option value="${each}">${name}</option>`)
      .join(''),
  }
  const written = readWebFile('demo/index.html').toString()
  const page = written.replace('<html lang="en">', `<html lang="${language}">`)
  return page.replace(/\{(\w+)\}/g, (whole, name) => all[name] ?? whole)
}

/** The guide is in English, and in the languages that have a folder. */
const hasGuide = (language: Language) =>
  existsSync(new URL(`../../docs/${language}`, import.meta.url))
