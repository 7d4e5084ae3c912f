/** The world of an attack: an API, the key of its page, and a clock. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import type { Visit } from './day.ts'

export interface World {
  readonly url: string
  readonly key: string
  readonly codeLength: number
  /** Milliseconds since the day began. Never decreases. */
  setTime(atMs: number): void
  /** Thousandths of a currency, by `prices` of the policy file. */
  priceOf(visit: Visit): number
  solve(challenge: unknown): Promise<string>
  /** Reads the code in the message of a notice. */
  readCode(noticeId: string): Promise<string>
  /** True if attackers solve challenges. */
  readonly isSolving: boolean
}

const maxTries = 10

export type Call = ReturnType<typeof createCall>['call']

/** Calls with the page's key, from any address. */
export function createCall({ url, key }: World) {
  const pool = new Pool(url, { connections: 32 })
  async function callOnce(path: string, ip: string, body: object) {
    const { statusCode, body: answer } = await pool.request({
      method: 'POST',
      path,
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'x-forwarded-for': ip,
      },
      body: JSON.stringify(body),
    })
    // biome-ignore lint/suspicious/noExplicitAny: the contract tests hold its shape
    return { status: statusCode, answer: (await answer.json()) as any }
  }

  return {
    /** Repeats a 503: on a busy machine the limits may answer too late, and then nothing was counted. */
    async call(path: string, ip: string, body: object) {
      for (let tries = 1; ; tries++) {
        const reply = await callOnce(path, ip, body)
        if (reply.status !== 503 || tries === maxTries) return reply
        await sleep(500)
      }
    },
    close: () => pool.close(),
  }
}
