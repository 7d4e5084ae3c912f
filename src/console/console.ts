/**
 * The support console as an Express app, for the admin port of an API process. It serves pages with forms and links, and
 * one small script that only refreshes them. It decides nothing about messages.
 *
 * Every request takes the same steps: find the operator (door.ts), check where a form came from, then answer the page.
 * Without a session, only the sign-in page is shown. While Redis or PostgreSQL does not answer, a page reports it with 503.
 */
import { randomUUID } from 'node:crypto'
import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
} from 'express'
import { boundedParser } from '../base/bounded-parser.ts'
import { html } from '../base/html.ts'
import type { Log } from '../base/log.ts'
import { protectOwnPages } from '../base/own-pages.ts'
import { preferredLanguage } from '../base/preferred-language.ts'
import { statusOfRequestFault } from '../base/request-fault.ts'
import { Unavailable } from '../base/unavailable.ts'
import { fill, isLanguage, type Language, words } from '../base/words.ts'
import { createAssets } from './assets.ts'
import {
  chosenLanguageOf,
  type Door,
  endOfSessionHeader,
  hasToken,
  isFromHere,
  languageHeader,
  sessionHeader,
  type Visitor,
} from './door.ts'
import { frame } from './frame.ts'
import type { ConsoleRoute, Given, Page, View } from './page.ts'
import { signInPage } from './sign-in-page.ts'

type ProblemName = 'unavailable' | 'notFound' | 'forbidden' | 'internal' | 'badRequest'

const maxFormBytes = 8_192

export function createConsole(deps: {
  routes: readonly ConsoleRoute[]
  door: Door
  /** The clock of PostgreSQL. */
  nowMs: () => number
  log: Pick<Log, 'requestFailed'>
}): Express {
  const { routes, door, nowMs, log } = deps
  const assets = createAssets()
  const app = express()
  app.disable('x-powered-by').disable('etag')
  app.use(protectOwnPages)
  app.get('/assets/:version/:file', assets.answer)
  app.use((_, response, next) => {
    response.set('cache-control', 'no-store')
    next()
  })
  app.use(chooseLanguage)
  app.use(boundedParser(express.urlencoded({ extended: false, limit: maxFormBytes }), maxFormBytes))

  app.get('/login', (request, response) => {
    show(request, response, signInPage(languageOf(request), given(request.query).next))
  })
  app.post('/login', async (request, response) => {
    if (!isFromHere(request)) return problem(request, response, 'forbidden', 403)
    const { key = '', next } = given(request.body)
    const entered = await door.enter(request, key.trim().slice(0, 200))
    if (entered.kind === 'ok' && entered.token !== undefined) {
      response.append('set-cookie', sessionHeader(request, entered.token))
      return response.redirect(303, ownPath(next))
    }
    if (entered.kind === 'wait') {
      response.set('retry-after', String(Math.ceil(entered.retryAfterMs / 1_000)))
    }
    show(request, response, signInPage(languageOf(request), next, entered))
  })
  app.post('/sign-out', async (request, response) => {
    const { csrf, everywhere } = given(request.body)
    const visitor = isFromHere(request) ? await door.visitorOf(request) : null
    if (!visitor || !hasToken(visitor, csrf)) return problem(request, response, 'forbidden', 403)
    await (everywhere ? door.leaveEverywhere(visitor) : door.leave(request))
    response.append('set-cookie', endOfSessionHeader(request)).redirect(303, '/login')
  })
  for (const route of routes) app[route.method](route.path, handlerOf(route))
  app.use(async (request, response) => {
    response.locals.visitor = await door.visitorOf(request)
    problem(request, response, 'notFound', 404)
  })
  // Express recognises an error handler by its four parameters.
  const answerFailed: ErrorRequestHandler = (error, request, response, _next) =>
    answerError(error, request, response)
  app.use(answerFailed)
  return app

  function handlerOf(route: ConsoleRoute): RequestHandler {
    return async (request, response) => {
      const visitor = await door.visitorOf(request)
      // The page that reports a failure needs the visitor too.
      response.locals.visitor = visitor
      if (!visitor) {
        const next = new URLSearchParams({ next: request.method === 'GET' ? request.url : '/' })
        return response.redirect(303, `/login?${next}`)
      }
      const form = given(request.body)
      const isForm = route.method === 'post'
      if (isForm && !(isFromHere(request) && hasToken(visitor, form.csrf))) {
        return problem(request, response, 'forbidden', 403)
      }
      const view = viewOf(request, visitor)
      const { params, query } = request
      const outcome = await route.run({ view, params: given(params), query: given(query), form })
      if (outcome.kind === 'redirect') return response.redirect(303, outcome.to)
      if (outcome.kind === 'notFound') return problem(request, response, 'notFound', 404)
      show(request, response, outcome, view)
    }
  }

  function viewOf(request: Request, { operator, csrf }: Visitor): View {
    const language = languageOf(request)
    return { words: words[language].console, language, operator, csrf, nowMs: nowMs() }
  }

  function show(request: Request, response: Response, page: Page, view?: View): void {
    const { originalUrl: here } = request
    const around = { language: languageOf(request), assets: assets.paths, view, here }
    response
      .status(page.status ?? 200)
      .type('html')
      .send(frame(page, around))
  }

  function problem(
    request: Request,
    response: Response,
    name: ProblemName,
    status: number,
    part = '',
  ): void {
    const language = languageOf(request)
    const { problems } = words[language].console
    const text = fill(problems[`${name}Text`], language, { part })
    // A reset may be recorded but not done: then the operator sends it again (src/support/support.ts).
    const again = name === 'unavailable' && request.path.endsWith('/reset') && problems.resetAgain
    const body = html`<h1>${problems[name]}</h1><p>${text} ${again}</p>
<p><a href="/">${problems.back}</a></p>`
    const { visitor } = response.locals as { visitor?: Visitor | null }
    const view = visitor ? viewOf(request, visitor) : undefined
    show(request, response, { title: problems[name], body, status }, view)
  }

  function answerError(error: unknown, request: Request, response: Response): void {
    if (error instanceof Unavailable) {
      response.set('retry-after', '2')
      const part = error.part === 'postgresql' ? 'PostgreSQL' : 'Redis'
      problem(request, response, 'unavailable', 503, part)
      return
    }
    const isOfRequest = statusOfRequestFault(error) !== undefined
    if (!isOfRequest) log.requestFailed(randomUUID(), error)
    problem(request, response, isOfRequest ? 'badRequest' : 'internal', isOfRequest ? 400 : 500)
  }
}

/**
 * Follows the link to another language: keeps the choice in the cookie, and leads to the page without it. Otherwise each
 * refresh of that page would choose again, also for the other windows.
 */
const chooseLanguage: RequestHandler = (request, response, next) => {
  const { language, ...others } = request.query
  if (request.method !== 'GET' || language === undefined) return next()
  if (isLanguage(language)) response.append('set-cookie', languageHeader(language))
  const query = new URLSearchParams(others as Record<string, string>)
  response.redirect(303, ownPath(query.size > 0 ? `${request.path}?${query}` : request.path))
}

/** The language of the cookie, otherwise of the browser. */
function languageOf(request: Request): Language {
  const chosen = chosenLanguageOf(request)
  return isLanguage(chosen) ? chosen : preferredLanguage(request.headers['accept-language'])
}

/** Keeps the first value of a name that was sent twice. */
function given(values: unknown): Given {
  const entries = Object.entries((values ?? {}) as Record<string, unknown>)
  return Object.fromEntries(
    entries.map(([name, value]) => {
      const first = Array.isArray(value) ? value[0] : value
      return [name, typeof first === 'string' ? first : undefined]
    }),
  )
}

/** A path of this host, otherwise `/`. A link must not redirect to another host. */
function ownPath(path = ''): string {
  return /^\/(?![/\\])[\w\-./?=&%~+:]*$/.test(path) ? path : '/'
}
