/** A Postern with its console, and the work of a browser: cookies, forms and the tokens in them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createApiKeys } from '../../src/access/api-keys.ts'
import type { NewKey } from '../../src/access/key-store.ts'
import { everyApp } from '../../src/base/names.ts'
import { databaseAt } from '../tools/database.ts'
import { type Postern, type PosternOptions, startPostern } from '../tools/postern.ts'

export interface Reply {
  status: number
  headers: Headers
  text: string
}

export interface Client {
  get(path: string, headers?: Record<string, string>): Promise<Reply>
  /** Posts a form with the token of this session, from a page of this host, and follows the redirect. */
  submit(path: string, form: Record<string, string>): Promise<Reply>
  /** Posts unchanged and follows no redirect. */
  post(path: string, form: Record<string, string>, headers?: Record<string, string>): Promise<Reply>
  signIn(key: string): Promise<Reply>
  cookie(): string
}

/** Messages to Hong Kong go to a provider that never answers, all others to the sandbox. */
export const deadInHongKong = {
  providers: {
    box: { kind: 'sandbox', pace: '50 per 1s' },
    dead: { kind: 'webhook', url: 'http://127.0.0.1:9/none', secret: 'a secret of sixteen' },
  },
  routes: {
    sms: [{ match: { country: 'HK' }, use: ['dead'] }, { use: ['box'] }],
    email: [{ use: ['box'] }],
  },
}

export async function openConsole(options: PosternOptions = {}) {
  const postern = await startPostern(options)
  const database = databaseAt(postern.database.url, 1)
  const keys = createApiKeys(database)
  const createOperator = (over: Partial<NewKey> = {}) =>
    keys.create({ name: 'anna', app: everyApp, kind: 'operator', ...over })
  const client = (patience?: number) => clientOf(postern, patience)
  return { postern, keys, createOperator, client }
}

/** `patience`: the number of repeats after a late answer of a busy machine's Redis. People repeat too. */
export function clientOf({ adminUrl }: Pick<Postern, 'adminUrl'>, patience = 10): Client {
  const cookies = new Map<string, string>()

  const sent = () => [...cookies].map((pair) => pair.join('=')).join('; ')

  async function call(path: string, init: RequestInit, again = patience): Promise<Reply> {
    const response = await fetch(adminUrl + path, {
      ...init,
      redirect: 'manual',
      headers: { cookie: sent(), ...(init.headers as Record<string, string>) },
      signal: AbortSignal.timeout(10_000),
    })
    if (response.status === 503 && again > 0) {
      await response.body?.cancel()
      await sleep(200)
      return call(path, init, again - 1)
    }
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    return { status: response.status, headers: response.headers, text: await response.text() }
  }

  const get = (path: string, headers: Record<string, string> = {}) => call(path, { headers })

  const post: Client['post'] = (path, form, headers = { origin: adminUrl }) =>
    call(path, { method: 'POST', body: new URLSearchParams(form), headers })

  async function followed(reply: Reply): Promise<Reply> {
    if (reply.status !== 303) return reply
    return followed(await get(reply.headers.get('location') as string))
  }

  return {
    get: async (path, headers) => followed(await get(path, headers)),
    post,
    async submit(path, form) {
      const csrf = /name="csrf" value="([^"]+)"/.exec((await get('/')).text)?.[1] ?? ''
      return followed(await post(path, { csrf, ...form }))
    },
    signIn: async (key) => followed(await post('/login', { key })),
    cookie: sent,
  }
}
