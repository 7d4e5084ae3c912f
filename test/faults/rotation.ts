/**
 * `SECRET` is replaced in the three steps of docs/operations.md, while callers get codes from one process and check
 * them at another.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { freshPhone, startFleet } from '../tools/fleet.ts'
import { eventually } from '../tools/wait.ts'
import type { Fault } from './fault.ts'
import { callPeople } from './people.ts'

const [before, after] = [
  'the secret before, of thirty-two bytes',
  'the secret after, of thirty-two bytes',
]
const steps = [
  { SECRET: before, SECRET_PREVIOUS: after },
  { SECRET: after, SECRET_PREVIOUS: before },
  { SECRET: after, SECRET_PREVIOUS: '' },
]
const f40: Fault = {
  id: 'F40',
  breaks: 'SECRET replaced in three steps, with codes asked for and checked at different processes',
  holds: 'every code passes, and of two codes sent at once one passes',
  proves: 'I35',
  async prove(lab) {
    const fleet = await startFleet({
      ...{ apis: 2, env: { SECRET: before, SECRET_PREVIOUS: '' } },
      policyFile: {
        routes: { sms: [{ use: ['far'] }], whatsapp: [{ use: ['far'] }] },
        workflows: { both: ['sms', 'whatsapp'] },
      },
    })
    const people = callPeople(fleet)

    /** A double click. Both sends are accepted while the processes have different secrets and so count apart. */
    async function askTwice(): Promise<void> {
      const asked = { channel: 'sms', to: freshPhone() }
      const sent = await Promise.all(
        [0, 1].map((place) => people.post('/v1/captchas', asked, place)),
      )
      const unread = new Set(
        sent.flatMap(({ status, answer }) => (status === 202 ? answer.id : [])),
      )
      expect(unread.size).toBeGreaterThan(0)
      const hasPassed = async () => {
        for (const id of unread) {
          const code = people.codes.get(id)
          if (code === undefined) continue
          unread.delete(id)
          const { status } = await people.post('/v1/captchas/check', { ...asked, code }, 0)
          if (status === 200) return true
        }
        return false
      }
      await eventually(hasPassed, { withinMs: 20_000 })
    }

    people.start((count) => {
      const place = (count >> 2) % 2
      if (count % 4 === 0) return people.askByWays(place)
      return count % 2 === 0 ? askTwice() : people.askAndCheck(place)
    })
    for (const [step, env] of steps.entries()) {
      // During step 2, everything made under the old secret ends.
      if (step === 2) await people.pause()
      await Promise.all([
        fleet.startApi({ env }),
        fleet.startApi({ env }),
        fleet.startWorker({ env }),
      ])
      const [oldWorker] = fleet.workers.splice(0, 1)
      const isWorkerFirst = lab.between(0, 2) === 0
      if (isWorkerFirst) await oldWorker?.terminate()
      // First one process of each step, then two of the new step.
      for (let left = 2; left > 0; left--) {
        const [oldApi] = fleet.apis.splice(0, 1)
        await sleep(lab.length(500, 5_000))
        await oldApi?.terminate()
      }
      if (!isWorkerFirst) await oldWorker?.terminate()
    }
    await people.end()
    return undefined
  },
}

export const rotationFaults: readonly Fault[] = [f40]
