/** A route that most people would write by hand: Express, three limits per recipient in Redis, a row and a queue. */
import { createClient } from '../client.ts'
import type { Adapter } from '../service.ts'

export const handWritten: Adapter = {
  name: 'by hand: Express, BullMQ',
  async start(world) {
    const env = { PROVIDER_URL: world.providerUrl }
    const [api, worker] = await Promise.all(
      ['server', 'worker'].map((part) =>
        world.start(`bench/field/targets/hand-written-${part}.ts`, { env }),
      ),
    )
    if (!api || !worker) throw new Error('two processes were started')
    const client = createClient(api.url)
    return {
      processes: [api, worker],
      async send({ to, ip }) {
        const { status } = await client.post('/send', ip, { to })
        return status === 202 ? { is: 'accepted' } : { is: 'refused' }
      },
      async check({ to, ip, code }) {
        const { answer } = await client.post('/check', ip, { to, code })
        return { is: answer.result }
      },
      isQuiet: async () => (await client.post('/open', '127.0.0.1', {})).answer.open === 0,
      close: () => client.close(),
    }
  },
}
