/** People who ask for a code at one process and type it at another, while processes are replaced. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { type Fleet, freshPhone } from '../tools/fleet.ts'
import { eventually } from '../tools/wait.ts'

export interface People {
  /** The codes that the far end got, by notice id; and the latest one, by recipient. */
  readonly codes: ReadonlyMap<string, string>
  /** An answer of this API, or of another one while this one stops. A 503 changes nothing, so it is asked again. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers that the contract tests have checked
  post(path: string, body: unknown, place: number): Promise<{ status: number; answer: any }>
  /** A code is asked for at one process and passes at the other. */
  askAndCheck(place: number): Promise<void>
  /** A verification begins at one process, its next way at the other, and either code passes at the first. */
  askByWays(place: number): Promise<void>
  /** Sends people on their way, twenty a second if no other number is given, until `end`. */
  start(oneWay: (count: number) => Promise<void>, perSecond?: number): void
  /** Resolves when the people who are on their way have ended. */
  pause(): Promise<void>
  /** Ends the load. Throws what failed first. Returns the number of people who passed. */
  end(): Promise<number>
}

export function callPeople(fleet: Fleet): People {
  const codes = new Map<string, string>()
  fleet.farEnd.behave = ({ noticeId, to, text }) => {
    const code = /\d{4}/.exec(text)?.[0] ?? 'none'
    codes.set(noticeId, code)
    codes.set(to, code)
    return { status: 200 }
  }
  const underWay = new Set<Promise<void>>()
  const failures: unknown[] = []
  let passed = 0
  let isOver = false
  let running = Promise.resolve()

  const people: People = {
    codes,
    async post(path, body, place) {
      for (;;) {
        const { status, body: answer } = await fleet
          .post(path, body, fleet.apis[place])
          .catch((error) => {
            if (error.code === 'ECONNREFUSED') return { status: 0, body: {} }
            throw error
          })
        if (status !== 0 && status !== 503) return { status, answer }
        // What was under way is given back within three seconds.
        if (status === 503) await sleep(4_000)
      }
    },
    async askAndCheck(place) {
      const asked = { channel: 'sms', to: freshPhone() }
      const sent = await people.post('/v1/captchas', asked, place)
      expect(sent).toMatchObject({ status: 202 })
      const code = await eventually(() => codes.get(sent.answer.id) ?? false)
      const checked = await people.post('/v1/captchas/check', { ...asked, code }, 1 - place)
      expect(checked).toMatchObject({ status: 200, answer: { verified: true } })
    },
    async askByWays(place) {
      const to = freshPhone()
      const sent = await people.post('/v1/captchas', { workflow: 'both', to }, place)
      expect(sent).toMatchObject({ status: 202 })
      const { id } = sent.answer
      const first = await eventually(() => codes.get(to) ?? false)
      const next = await people.post(`/v1/captchas/${id}/next`, {}, 1 - place)
      expect(next).toMatchObject({ status: 202, answer: { id, way: { index: 2 } } })
      // Both ways have the same number, and never the same code.
      const second = await eventually(() => codes.get(to) !== first && codes.get(to))
      const code = place === 0 ? first : second
      const checked = await people.post('/v1/captchas/check', { id, code }, place)
      expect(checked).toMatchObject({ status: 200, answer: { verified: true, id } })
    },
    start(oneWay, perSecond = 20) {
      running = (async () => {
        for (let count = 0; !isOver; count++) {
          const one = oneWay(count)
            .then(() => {
              passed += 1
            })
            .catch((error) => failures.push(error))
            .then(() => void underWay.delete(one))
          underWay.add(one)
          await sleep(1_000 / perSecond)
        }
      })()
    },
    async pause() {
      await Promise.all(underWay)
    },
    async end() {
      isOver = true
      await running
      await Promise.all(underWay)
      expect(failures).toEqual([])
      expect(passed).toBeGreaterThan(20)
      return passed
    },
  }
  return people
}
