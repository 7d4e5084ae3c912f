/**
 * The provider of every service: a server that takes messages as a carrier's API does. It runs in the process of the
 * harness, which also presses and types, so both ends of a message have one clock.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Arrival {
  readonly code: string
  /** By this process' monotonic clock. */
  readonly atMs: number
}

/**
 * `holds`: it reads messages and does not answer. `is slow`: it delivers a message at once, and answers after `slowMs`.
 * `is away`: its port is closed. `is silent`: it accepts messages and delivers none.
 */
export type Behaviour = 'accepts' | 'holds' | 'is slow' | 'is away' | 'is silent'

/** Longer than the time limit of most callers. */
const slowMs = 8_000

export type Provider = Awaited<ReturnType<typeof startProvider>>

export async function startProvider() {
  const arrivals = new Map<string, Arrival[]>()
  const held: (() => void)[] = []
  let behaviour: Behaviour = 'accepts'
  let calls = 0

  const server = createServer(async (request, response) => {
    const atMs = performance.now()
    const id = `message-${++calls}`
    const { to, text } = (await json(request)) as { to: string; text: string }
    const all = arrivals.get(to) ?? []
    arrivals.set(to, all)
    if (behaviour !== 'is silent') all.push({ code: /\b\d{4,10}\b/.exec(text)?.[0] ?? '', atMs })
    if (behaviour === 'is slow') await sleep(slowMs)
    if (behaviour === 'holds') await new Promise<void>((done) => held.push(done))
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ id }))
  })
  const open = (port: number) => once(server.listen(port, '127.0.0.1'), 'listening')
  const shut = () => {
    server.close()
    server.closeAllConnections()
  }
  await open(0)
  const { port } = server.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}/messages`,
    calls: () => calls,
    messagesTo: (to: string): readonly Arrival[] => arrivals.get(to) ?? [],
    async behave(next: Behaviour) {
      if (next !== 'holds') for (const release of held.splice(0)) release()
      if (next === 'is away') shut()
      else if (behaviour === 'is away') await open(port)
      behaviour = next
    },
    close: shut,
  }
}
