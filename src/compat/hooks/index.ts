/**
 * Hooks of identity products at `POST /v1/hooks/<name>`. The product makes a code, keeps it and checks it. Postern sends
 * it, by its limits, routes, templates and receipts.
 *
 * Any stranger can call the address (I21). So a request is refused by its headers where that is possible, and its body is
 * bounded. Nothing is parsed before the signature is known to be right.
 */
import { createHash } from 'node:crypto'
import { type Request, type Response, Router } from 'express'
import { z } from 'zod'
import { parseJson } from '../../base/json.ts'
import { limitableAddress } from '../../base/limitable-address.ts'
import { appName, defaultScene, shortName } from '../../base/names.ts'
import { Problem } from '../../base/problems.ts'
import type { FieldWord, Values } from '../../base/words.ts'
import type { PosternCalls } from '../../http/in-process.ts'
import { defineFacade } from '../facade.ts'
import type { CodeToSend, HookKind, HookMessage, HookRequest } from './hook-kind.ts'
import { logto } from './logto.ts'
import { problemOf, refusalIn200 } from './refusals.ts'
import { supabase } from './supabase.ts'
import { zitadel } from './zitadel.ts'

const kinds: Readonly<Record<string, HookKind>> = { supabase, zitadel, logto }

const hookName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'must be letters, digits, _ and -')

const hook = z
  .strictObject({
    kind: z.enum(Object.keys(kinds) as [string, ...string[]]),
    secret: z.string(),
    app: appName,
    scene: shortName.default(defaultScene),
  })
  .check(({ value: { kind, secret }, issues }) => {
    const message = kinds[kind]?.findMistake(secret)
    if (message) issues.push({ code: 'custom', message, path: ['secret'], input: '' })
  })

type Hook = z.output<typeof hook>

/** A call that was recorded at one hook must not be genuine at another, where it would send its code once more. */
const hooksByName = z.record(hookName, hook).check(({ value, issues }) => {
  const owners = new Map<string, string>()
  for (const [name, { kind, secret }] of Object.entries(value)) {
    for (const one of kinds[kind]?.secretsIn?.(secret) ?? [secret]) {
      const owner = owners.get(one) ?? name
      owners.set(one, owner)
      if (owner === name) continue
      const message = `is also the secret of ${owner}; each hook needs a separate secret`
      issues.push({ code: 'custom', message, path: [name, 'secret'], input: '' })
    }
  }
})

/** I21: without proof of the sender, a body takes no more memory than a receipt. */
const maxBodyBytes = 49_152

export const hooks = defineFacade({
  settings: hooksByName,
  secretsIn: (settings) =>
    Object.fromEntries(
      Object.entries(settings).map(([name, { secret }]) => [`${name}.secret`, secret]),
    ),
  create: (settings) => ({
    name: 'hooks',
    sendsOwnCodes: true,
    router(postern) {
      const router = Router({ caseSensitive: true })
      for (const [name, one] of Object.entries(settings)) {
        router.post(`/v1/hooks/${name}`, createHook(postern, name, one))
        router.all(`/v1/hooks/${name}`, () => {
          throw new Problem('method_not_allowed', {}, { allow: 'POST' })
        })
      }
      return router
    },
  }),
})

function createHook(postern: PosternCalls, name: string, { kind, secret, app, scene }: Hook) {
  const reader = (kinds[kind] as HookKind).create(secret)

  return async (request: Request, response: Response): Promise<void> => {
    const genuine = await receive(request)
    const message = reader.read(parseJson(genuine.rawBody.toString()), genuine)
    const refusal = message ? await refusalOf(message) : invalid('noMessage', { kind })
    if (refusal && !(reader.refusesIn200 && refusal.code !== 'unavailable')) throw refusal
    response.set('cache-control', 'no-store').json(refusal ? refusalIn200(refusal) : {})
  }

  /** Throws Problem for a request that is not genuine. */
  async function receive(request: Request): Promise<HookRequest> {
    const head = { headers: request.headers, receivedAt: Date.now() }
    if (!reader.mayBeGenuine(head)) throw notGenuine()
    const isGenuine = (rawBody: Buffer) => reader.isGenuine({ ...head, rawBody })
    const rawBody = await postern.readBody(request, maxBodyBytes, isGenuine)
    if (!isGenuine(rawBody)) throw notGenuine()
    return { ...head, rawBody }
  }

  /** Sends the codes of a message. Undefined if all were accepted. */
  async function refusalOf({ id, codes, refusal }: HookMessage): Promise<Problem | undefined> {
    if (refusal) return invalid(refusal)
    if (codes.length === 0) return invalid('noCodeInMessage')
    if (codes.some(({ to }) => to === '')) return invalid('noRecipientInMessage')
    for (const [index, code] of codes.entries()) {
      const idempotencyKey = id === undefined ? undefined : keyOf(`${name} ${index} ${id}`)
      const sent = await postern.sendCaptcha({ app, scene, idempotencyKey, ...askedBy(code) })
      if (sent.outcome !== 'accepted') return problemOf(sent)
    }
    return undefined
  }
}

/** Calls in process refuse a longer address. */
const maxAddressLength = 45

/** A repeat of the call sends no second message. */
const keyOf = (text: string) => `hook:${createHash('sha256').update(text).digest('hex')}`

/** Products can write a number without `+`, but always with the country code. */
function askedBy({ channel, to, code, locale, ip }: CodeToSend) {
  // A strange address is no reason to withhold a code.
  const isAddress = ip && ip.length <= maxAddressLength && limitableAddress(ip) !== undefined
  return {
    ...{ channel, to: /^[1-9]\d{5,14}$/.test(to) ? `+${to}` : to, code },
    ...(locale ? { locale } : {}),
    ...(isAddress ? { ip } : {}),
  }
}

const notGenuine = () => new Problem('unauthorized', {}, {}, 'notGenuine')

const invalid = (word: FieldWord, values?: Values) =>
  new Problem('invalid_request', { errors: [{ path: '', word, values }] })
