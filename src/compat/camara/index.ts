/**
 * CAMARA's `one-time-password-sms`, version 1.1.1: programs written for this API of mobile operators send and check codes
 * with Postern. An `authenticationId` is the id of a notice.
 */
import { randomUUID } from 'node:crypto'
import express, { type Request, type RequestHandler, Router } from 'express'
import { z } from 'zod'
import { boundedParser } from '../../base/bounded-parser.ts'
import { durationText } from '../../base/durations.ts'
import type { PosternCalls } from '../../http/in-process.ts'
import { answerUnreadable, write } from '../answer.ts'
import { defineFacade } from '../facade.ts'
import { fault, unavailable } from './faults.ts'
import { messageTemplate } from './message.ts'
import { type Caller, createOperations, type Operation, own } from './operations.ts'

const settings = z.strictObject({
  /** Codes per number and window. */
  maxCodes: z.int().min(1).max(1_000).default(5),
  window: durationText.default('24h'),
})

export const camara = defineFacade({
  settings,
  create: ({ maxCodes, window }) => ({
    name: 'camara',
    // Decided in one step with the operator's rules, so a refused code uses up nothing.
    policies: {
      [own.policy]: [
        { name: own.rule, key: '{app}:{to}', sliding: `${maxCodes} per ${window}` },
        { include: 'captcha' },
      ],
    },
    templates: { [own.template]: messageTemplate },
    router: createCamaraRouter,
  }),
})

const basePath = '/one-time-password-sms/v1'

function createCamaraRouter(postern: PosternCalls): Router {
  const { send, validate } = createOperations(postern)
  const router = Router({ caseSensitive: true })
  router.use(basePath, correlate, authenticate(postern))
  for (const [path, operation] of Object.entries({
    '/send-code': send,
    '/validate-code': validate,
  })) {
    const all = basePath + path
    router.post(all, readJson, answering(operation))
    router.all(all, (_, response) =>
      write(response, fault('METHOD_NOT_ALLOWED', '', { Allow: 'POST' })),
    )
  }
  router.use(basePath, (_, response) => write(response, fault('NOT_FOUND')))
  return router.use(answerUnreadable(() => fault('INVALID_ARGUMENT', 'The body cannot be read.')))
}

const correlator = 'x-correlator'

/** Every answer has the correlator of the request, or a new one. */
const correlate: RequestHandler = ({ headers }, response, next) => {
  const given = headers[correlator]
  const isValid = typeof given === 'string' && /^[a-zA-Z0-9-_:;./<>{}]{0,256}$/.test(given)
  response.set(correlator, isValid ? given : randomUUID())
  if (given === undefined || isValid) next()
  else write(response, fault('INVALID_ARGUMENT', 'x-correlator has an invalid form.'))
}

/** No byte of a body is read before its key is known. */
const authenticate =
  (postern: PosternCalls): RequestHandler =>
  async ({ headers }, response, next) => {
    const [, token = ''] = /^Bearer +([\x21-\x7e]{1,200})$/i.exec(headers.authorization ?? '') ?? []
    const key = await postern.authenticate(token)
    if (key.outcome === 'unavailable') return write(response, unavailable())
    if (key.outcome === 'unauthorized') {
      return write(response, fault('UNAUTHENTICATED', '', { 'WWW-Authenticate': 'Bearer' }))
    }
    if (key.kind !== 'secret') return write(response, fault('PERMISSION_DENIED'))
    const { app, keyId } = key
    response.locals.caller = { app, keyId } satisfies Caller
    next()
  }

const maxBodyBytes = 16_384
const readJson = boundedParser(express.json({ limit: maxBodyBytes, inflate: false }), maxBodyBytes)

const answering =
  (operation: Operation): RequestHandler =>
  async ({ body }: Request, response) =>
    write(response, await operation(response.locals.caller as Caller, body))
