import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'

export type Client = ReturnType<typeof createClient>

const retryMs = 500
const maxTries = 120

/** Posts JSON from any address, by `X-Forwarded-For`. */
export function createClient(url: string, headers: Readonly<Record<string, string>> = {}) {
  const pool = new Pool(url, { connections: 32 })
  async function postOnce(path: string, ip: string, sent: object) {
    const answered = await pool.request({
      method: 'POST',
      path,
      headers: { ...headers, 'content-type': 'application/json', 'x-forwarded-for': ip },
      body: JSON.stringify(sent),
    })
    // biome-ignore lint/suspicious/noExplicitAny: each adapter knows the answers of its service
    const answer = (await answered.body.json().catch(() => ({}))) as any
    return { status: answered.statusCode, headers: answered.headers, answer }
  }
  return {
    /** Repeats a 503 for a minute: on a busy machine a service may refuse what it can't do in time, and changes nothing. */
    async post(path: string, ip: string, sent: object) {
      for (let tries = 1; ; tries++) {
        const reply = await postOnce(path, ip, sent)
        if (reply.status !== 503) return reply
        if (tries === maxTries) throw new Error(`${path}: 503 for a minute`)
        await sleep(retryMs)
      }
    },
    close: () => pool.close(),
  }
}
