/** examples/next, installed, built and run by the commands of its README. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { findFreePort } from '../../src/dev/server-process.ts'
import { launchBrowser, openPage } from '../tools/browser.ts'
import { startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import { installExamples } from './run-example.ts'

test('examples/next: the server action learns whether the pass is good, and React and the field leave each other alone', async () => {
  const folder = await installExamples(['next'])
  const example = join(folder, 'next')
  const next = join(folder, 'node_modules/next/dist/bin/next')
  const postern = await startPostern()
  const port = await findFreePort()
  const origin = `http://localhost:${port}`
  const env = {
    ...process.env,
    NEXT_TELEMETRY_DISABLED: '1',
    NODE_ENV: 'production',
    POSTERN_URL: postern.url,
    PUBLISHABLE_KEY: await publishableKey(postern.database, { origins: [origin] }),
    SECRET_KEY: postern.key,
  } as const
  await promisify(execFile)(process.execPath, [next, 'build'], { cwd: example, env })
  const server = spawn(process.execPath, [next, 'start', '--port', String(port)], {
    cwd: example,
    env,
    stdio: 'ignore',
  })
  releaseLater(() => {
    server.kill()
    return once(server, 'exit')
  })
  await eventually(async () => (await fetch(origin)).ok, { withinMs: 60_000 })

  const { page, messages } = await openPage(await launchBrowser(), origin)
  await page.emulateMedia({ colorScheme: 'dark' })
  const label = `getComputedStyle(document.querySelector('.postern-label')).color`
  await expect.poll(() => page.evaluate(label)).toBe('rgb(236, 239, 246)')
  const to = '+8613800138000'
  await page.getByLabel('Mobile number').fill(to)
  await page.getByRole('button', { name: 'Send code' }).click()
  await page.getByLabel('Code sent to').fill(await postern.codeFor(to))
  await expect.poll(() => page.locator('.postern-message').textContent()).toBe('Confirmed.')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await expect.poll(() => page.locator('main > p').textContent()).toBe('Welcome!')
  expect(messages.filter((text) => !/favicon|404/.test(text))).toEqual([])
})
