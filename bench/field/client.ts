import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'

export type Client = ReturnType<typeof createClient>

const maxTries = 10

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
    /** Repeats a 503: on a busy machine a service may refuse what it can't do in time, and changes nothing. */
    async post(path: string, ip: string, sent: object) {
      for (let tries = 1; ; tries++) {
        const reply = await postOnce(path, ip, sent)
        if (reply.status !== 503 || tries === maxTries) return reply
        await sleep(500)
      }
    },
    close: () => pool.close(),
  }
}
