/**
 * Twilio Verify, version 2: a program that uses Twilio's client needs another address, and a secret key of Postern in
 * place of its auth token. Postern's limits, routes, templates and receipts apply.
 *
 * A verification is a notice: the `VE…` and `VL…` SIDs contain the digits of its id. A service is an app and a scene.
 */
import { isIP } from 'node:net'
import express, { type Request, type RequestHandler, Router } from 'express'
import { z } from 'zod'
import { boundedParser } from '../../base/bounded-parser.ts'
import { appName, defaultScene, shortName } from '../../base/names.ts'
import type { PosternCalls } from '../../http/in-process.ts'
import type { Answer } from '../../http/problem.ts'
import { answerUnreadable, write } from '../answer.ts'
import { defineFacade } from '../facade.ts'
import type { Asked, Services } from './asked.ts'
import { createAttempts } from './attempts.ts'
import { fault } from './faults.ts'
import { createVerifications } from './verifications.ts'

/** A list of attempts is a search for the scenes of an app, and a search takes no more. */
const maxServicesPerApp = 100

const settings = z.strictObject({
  services: z
    .record(
      z.string().regex(/^VA[0-9a-fA-F]{32}$/, 'must be VA and 32 hex digits'),
      z.strictObject({ app: appName, scene: shortName.default(defaultScene) }),
    )
    .refine((services) => {
      const places = Object.values(services).map(({ app, scene }) => `${app} ${scene}`)
      return new Set(places).size === places.length
    }, 'two services have the same app and scene')
    .refine((services) => {
      const byApp = Map.groupBy(Object.values(services), ({ app }) => app)
      return [...byApp.values()].every(({ length }) => length <= maxServicesPerApp)
    }, `an app has more than ${maxServicesPerApp} services; give some to another app`),
})

export const twilioVerify = defineFacade({
  settings,
  create: ({ services }) => ({
    name: 'twilioVerify',
    sendsOwnCodes: true,
    router: (postern) => createTwilioRouter(postern, services),
  }),
})

const bases = ['/v2/Services', '/v2/Attempts']

type Handle = (asked: Asked) => Promise<Answer>

function createTwilioRouter(postern: PosternCalls, services: Services): Router {
  const verifications = createVerifications(postern, services)
  const attempts = createAttempts(postern, services)
  const ofService = '/v2/Services/:service'
  const paths: Record<string, { get?: Handle; post?: Handle }> = {
    [`${ofService}/Verifications`]: { post: verifications.send },
    [`${ofService}/Verifications/:sid`]: { get: verifications.fetch, post: verifications.update },
    [`${ofService}/VerificationCheck`]: { post: verifications.check },
    '/v2/Attempts': { get: attempts.list },
    '/v2/Attempts/Summary': { get: attempts.summary },
  }
  const router = Router({ caseSensitive: true })
  router.use(bases, authenticate(postern), readForm)
  for (const [path, { get, post }] of Object.entries(paths)) {
    if (get) router.get(path, answering(get))
    if (post) router.post(path, answering(post))
    const allow = [...(get ? ['GET', 'HEAD'] : []), ...(post ? ['POST'] : [])].join(', ')
    router.all(path, (_, response) => write(response, fault(20004, undefined, { allow })))
  }
  router.use(bases, (_, response) => write(response, fault(20404)))
  return router.use(
    answerUnreadable((isTooLarge) =>
      fault(60200, isTooLarge ? 'The body is too large' : 'The request cannot be read'),
    ),
  )
}

const answering =
  (handle: Handle): RequestHandler =>
  async (request, response) =>
    write(response, await handle(askedBy(request, response.locals.account as Asked['account'])))

/** No byte of a body is read before its key is known. */
const authenticate =
  (postern: PosternCalls): RequestHandler =>
  async ({ headers }, response, next) => {
    const [, encoded = ''] =
      /^Basic +([A-Za-z0-9+/=]{1,500})$/i.exec(headers.authorization ?? '') ?? []
    const [, sid = '', token = ''] = /^(AC[!-9;-~]*):(.*)$/s.exec(atob64(encoded)) ?? []
    const key = await postern.authenticate(token)
    if (key.outcome === 'unavailable') return write(response, fault(20503))
    if (key.outcome === 'unauthorized' || key.kind !== 'secret') {
      return write(response, unauthorized())
    }
    const isSid = /^AC[0-9a-fA-F]{32}$/.test(sid)
    const { app, keyId } = key
    response.locals.account = { app, keyId, sid: isSid ? sid : null } satisfies Asked['account']
    next()
  }

const unauthorized = () => fault(20003, undefined, { 'www-authenticate': 'Basic realm="Postern"' })

const atob64 = (text: string) => Buffer.from(text, 'base64').toString('latin1')

const maxFormBytes = 16_384
/** A compressed body can be a bomb, and no client of Twilio sends one. */
const readForm = boundedParser(
  express.urlencoded({
    ...{ extended: false, inflate: false, limit: maxFormBytes, parameterLimit: 100 },
  }),
  maxFormBytes,
)

function askedBy(request: Request, account: Asked['account']): Asked {
  const { protocol, headers, baseUrl } = request
  const origin = URL.parse(`${protocol}://${headers.host}`)?.origin ?? 'http://localhost'
  return {
    account,
    params: request.params as Record<string, string>,
    query: request.query,
    form: typeof request.body === 'object' && request.body !== null ? request.body : {},
    // A proxy may write a word in place of an address.
    ip: isIP(request.ip ?? '') ? request.ip : request.socket.remoteAddress,
    urlOf: (path) => `${origin}${baseUrl}${path}`,
  }
}
