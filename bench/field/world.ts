/** Servers of a service that is measured: empty, and by the day's clock if a day is played. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Bench, openBench } from '../harness/bench.ts'
import { createDayClock, type DayClock } from './clock.ts'
import { type Provider, startProvider } from './provider.ts'
import type { World } from './service.ts'

interface FieldWorld extends World {
  readonly bench: Bench
  readonly provider: Provider
  close(): Promise<void>
}

type DayWorld = FieldWorld & { readonly clock: DayClock }
let opened: Promise<unknown> = Promise.resolve()

/** One after another: while the servers of a world start, the environment of this process has its clock. */
export function openDayWorld(): Promise<DayWorld> {
  const world = opened.then(openNow)
  opened = world.catch(() => {})
  return world
}

async function openNow(): Promise<DayWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-field-'))
  const clock = createDayClock(folder)
  // Redis and PostgreSQL get the environment of this process, whose own clock is already the real one.
  const before = { ...process.env }
  Object.assign(process.env, clock.env)
  const world = await openWorld(clock.env).finally(() => {
    for (const name of Object.keys(clock.env)) {
      if (before[name] === undefined) delete process.env[name]
      else process.env[name] = before[name]
    }
  })
  return {
    ...world,
    clock,
    async close() {
      await world.close()
      clock.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** `clockEnv`: for the processes of the service. */
export async function openWorld(
  clockEnv: Readonly<Record<string, string>> = {},
): Promise<FieldWorld> {
  const bench = await openBench([], true)
  const provider = await startProvider()
  bench.closeLater(() => provider.close())
  const { redis, postgres, folder } = bench
  return {
    ...{ bench, provider, redis, postgres, folder, providerUrl: provider.url },
    start: (file, { policyFile, env, cwd } = {}) =>
      bench.start(file, policyFile, { cwd, env: { ...clockEnv, ...env } }),
    close: () => bench.close(),
  }
}
