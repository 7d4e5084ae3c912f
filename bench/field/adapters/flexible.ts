/** The same route with a library for the limits (rate-limiter-flexible) and no queue: one process, its codes in Redis. */
import { createClient } from '../client.ts'
import type { Adapter } from '../service.ts'

export const flexible: Adapter = {
  name: 'rate-limiter-flexible, no queue',
  async start(world) {
    const env = { PROVIDER_URL: world.providerUrl }
    const server = await world.start('bench/field/targets/flexible.ts', { env })
    const client = createClient(server.url)
    return {
      processes: [server],
      async send({ to, ip }) {
        const { status, headers } = await client.post('/send', ip, { to })
        if (status === 200) return { is: 'accepted' }
        return { is: 'refused', waitMs: Number(headers['retry-after']) * 1_000 || undefined }
      },
      async check({ to, ip, code }) {
        const { answer } = await client.post('/check', ip, { to, code })
        return { is: answer.result }
      },
      close: () => client.close(),
    }
  },
}
