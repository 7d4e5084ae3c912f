/** Postern inside an Express app, with its worker, as one process: routes of the app call it without HTTP. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { migrate } from '../../../src/storage/migrate.ts'
import { createClient } from '../client.ts'
import type { Adapter, Challenged, Checked, Press, Sent } from '../service.ts'
import { alertRules, readPolicy, routed, solved } from './postern.ts'

/** As the routes in ../targets/embedded.ts answer: the outcome of a call in process. */
interface Outcome {
  readonly outcome: string
  readonly retryAfterMs?: number
  readonly known?: string
}

export const embeddedWith = (name: string): Adapter => ({
  name: `Postern in process, ${name}.yaml`,
  countries: readPolicy(name).recipients?.countries,
  async start(world) {
    await migrate(world.postgres.url)
    const policy = join(world.folder, 'embedded.json')
    writeFileSync(policy, JSON.stringify(routed(readPolicy(name), world.providerUrl)))
    const env = { POSTERN_CONFIG: policy }
    const host = await world.start('bench/field/targets/embedded.ts', { env })
    const client = createClient(host.url)

    /** Calls a route until no challenge is in the way. */
    async function call<Result>(
      path: string,
      press: Omit<Press, 'known'> & { known?: string | true | undefined },
      meaning: (outcome: Outcome) => Result,
      challenge?: string,
    ): Promise<Result | Challenged<Result>> {
      const { ip, ...asked } = press
      const { answer } = await client.post(path, ip, { ...asked, challenge })
      if (answer.outcome !== 'challenge_required') return meaning(answer)
      const solve = async () => (await call(path, press, meaning, await solved(answer))) as Result
      return { is: 'challenged', solve }
    }

    return {
      processes: [host],
      send: (press) => call<Sent>('/send', press, sentBy),
      check: (typed) =>
        call<Checked>('/check', { ...typed, known: typed.known ?? true }, checkedBy),
      isQuiet: async () => (await client.post('/open', '127.0.0.1', {})).answer.open === 0,
      watch: {
        rules: alertRules,
        metrics: async () => [await (await fetch(`${host.url}/metrics`)).text()],
      },
      close: () => client.close(),
    }
  },
})

const sentBy = ({ outcome, retryAfterMs: waitMs }: Outcome): Sent =>
  outcome === 'accepted' ? { is: 'accepted' } : { is: 'refused', waitMs }

const checkedBy = ({ outcome, known }: Outcome): Checked => {
  const results: Record<string, Checked> = {
    passed: { is: 'passed', known },
    code_mismatch: { is: 'wrong' },
    code_gone: { is: 'gone' },
  }
  return results[outcome] ?? { is: 'refused' }
}
