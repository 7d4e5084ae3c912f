/** A demo with separate data, and a browser that shows it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Browser, chromium } from 'playwright-core'
import { findOrInstall } from '../../src/dev/find-or-install.ts'
import { findFreePort } from '../../src/dev/server-process.ts'

const readyWithinMs = 60_000

export interface OwnDemo {
  /** The origin of the demo page and of the API. */
  readonly demo: string
  readonly admin: string
  readonly secretKey: string
  stop(): Promise<void>
}

export async function startDemo(...flags: string[]): Promise<OwnDemo> {
  const [port, adminPort] = [await findFreePort(), await findFreePort()]
  const folder = mkdtempSync(join(tmpdir(), 'postern-pages-'))
  const child = spawn(process.execPath, ['src/dev/demo.ts', ...flags], {
    env: { ...process.env, PORT: `${port}`, ADMIN_PORT: `${adminPort}`, POSTERN_DATA: folder },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const admin = `http://127.0.0.1:${adminPort}`
  const giveUpAtMs = performance.now() + readyWithinMs
  const isReady = async () => (await fetch(`${admin}/readyz`).catch(() => undefined))?.ok
  while (!(await isReady())) {
    if (child.exitCode !== null || performance.now() > giveUpAtMs) {
      child.kill()
      throw new Error('the demo did not start')
    }
    await sleep(100)
  }
  return {
    demo: `http://localhost:${port}`,
    admin,
    secretKey: readFileSync(join(folder, 'demo-key'), 'utf8').trim(),
    async stop() {
      const exited = once(child, 'exit')
      child.kill()
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export function openBrowser(): Promise<Browser> {
  const executablePath = findOrInstall(
    ['chromium', 'chromium-browser', 'google-chrome'],
    'chromium',
    'Chromium must be on the PATH (Debian: apt-get install chromium).',
  )
  const args = ['--no-sandbox', '--disable-gpu', '--no-proxy-server']
  return chromium.launch({ executablePath, args })
}
