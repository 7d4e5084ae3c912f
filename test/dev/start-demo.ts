import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { clientOf, type Postern } from '../tools/postern.ts'
import { type PosternProcess, startProcess } from '../tools/processes.ts'
import { testRedis } from '../tools/redis.ts'

export type Demo = PosternProcess & Pick<Postern, 'post' | 'get' | 'messages' | 'codeFor'>

/** The demo as a process, on servers of the test run, without its guide. */
export async function startDemo(): Promise<Demo> {
  const [redis, database] = [await testRedis(), await testDatabase()]
  const key = 'psk_demo_of_the_tests'
  const demo = await startProcess('demo', {
    env: {
      REDIS_URL: redis.url,
      DATABASE_URL: database.url,
      POSTERN_DATA: mkdtempSync(join(inject('runFolder'), 'demo-')),
      BOOTSTRAP_SECRET_KEY: key,
    },
    args: ['--no-guide'],
    withinMs: 120_000,
  })
  return { ...demo, ...clientOf(demo.url, key) }
}

/** Signal 0: tests if the process exists. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
