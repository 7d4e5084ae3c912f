import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { launchBrowser, openPage } from '../support/browser.ts'
import { startPostern } from '../support/postern.ts'
import { publishableKey } from '../support/publishable-key.ts'
import { releaseLater } from '../support/release.ts'
import { repositoryRoot } from '../support/source-files.ts'
import { soon } from './field-page.ts'

test('examples/plain-form: from the page to a server that knows whose address it is; a pass of one’s own making is none', async () => {
  const postern = await startPostern()
  const port = await freePort()
  const origin = `http://localhost:${port}`
  const example = spawn(process.execPath, ['examples/plain-form/server.ts'], {
    cwd: repositoryRoot,
    env: {
      ...process.env,
      PORT: String(port),
      POSTERN_URL: postern.url,
      PUBLISHABLE_KEY: await publishableKey(postern.database, { origins: [origin] }),
      SECRET_KEY: postern.key,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  releaseLater(() => {
    example.kill()
    return once(example, 'exit')
  })
  await once(example.stdout, 'data')

  const { page, messages } = await openPage(await launchBrowser(), origin)
  await page.getByLabel('Name').fill('Ann')
  await page.getByLabel('Mobile number').fill('+8613800138000')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await soon(() => page.locator('.postern-message').textContent()).toBe(
    'Confirm this with a code first.',
  )
  await page.getByRole('button', { name: 'Send code' }).click()
  const code = await postern.codeFor('+8613800138000')
  await page.getByLabel('Code sent to').fill(code)
  await soon(() => page.locator('.postern-message').textContent()).toBe('Confirmed.')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await soon(() => page.locator('p').textContent()).toBe('Welcome!')
  expect(messages.filter((text) => !text.includes('favicon') && !text.includes('404'))).toEqual([])

  const form = new URLSearchParams({
    'postern-pass': 'a.b.c',
    'postern-channel': 'sms',
    'postern-to': '+8613800138000',
  })
  const forged = await fetch(`${origin}/signup`, { method: 'POST', body: form })
  expect(await forged.text()).toContain('Please confirm')
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
