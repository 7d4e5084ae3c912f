/** Where an attack is played: an API, a key that stands in its page, and a clock. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'

export interface World {
  readonly url: string
  readonly key: string
  readonly codeLength: number
  /** Since the day began. Never goes back. */
  setTime(atMs: number): void
  /** Thousandths of a currency, by the policy file's `prices`. */
  priceOf(country: string): number
  solve(challenge: unknown): Promise<string>
  /** What the message of a notice says. */
  readCode(noticeId: string): Promise<string>
  /** Whether attackers solve what they are asked to solve. */
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
    /** On a machine that is busy with other things the limits may not answer in time: nothing was taken then. */
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
