/** The API page in a real browser: in Postern's colours, light, dark and forced, and readable on every width. */
import axeCore from 'axe-core'
import { expect, test } from 'vitest'
import { launchBrowser, openPage } from '../tools/browser.ts'
import { startPostern } from '../tools/postern.ts'

test('axe finds nothing and nothing is cut off: all closed, two calls open and one being tried, the dialog for a key', async () => {
  const postern = await startPostern({ roles: { api: true, worker: false } })
  const { page, messages } = await openPage(await launchBrowser(), `${postern.url}/docs`)
  const call = page.locator('.opblock-summary-control').first()
  await call.waitFor()
  await page.evaluate(axeCore.source)
  const look = () =>
    page.evaluate(`axe.run().then(({ violations }) => ({
      found: violations.map(({ id, nodes }) => [id, nodes[0].html]),
      tooWide: document.documentElement.scrollWidth - innerWidth,
    }))`)
  for (const state of ['closed', 'open', 'dialog']) {
    if (state === 'open') {
      await page.locator('.opblock-summary-control').nth(1).click()
      await call.click()
      await page.getByRole('button', { name: 'Try it out' }).first().click()
    }
    if (state === 'dialog') await page.locator('.btn.authorize').click()
    await expect.poll(() => page.locator('textarea').count()).toBe(Number(state !== 'closed'))
    await expect.poll(() => page.locator('.modal-ux').count()).toBe(Number(state === 'dialog'))
    for (const how of [
      { width: 1_280, colorScheme: 'light', forcedColors: 'none' },
      { width: 360, colorScheme: 'dark', forcedColors: 'none' },
      { width: 320, colorScheme: 'dark', forcedColors: 'active' },
    ] as const) {
      await page.setViewportSize({ width: how.width, height: 900 })
      await page.emulateMedia(how)
      expect([how, await look()]).toEqual([how, { found: [], tooWide: 0 }])
    }
  }
  // A link to a call opens it.
  expect(new URL(page.url()).hash).toBe('#/captchas/sendCaptcha')
  expect(messages).toEqual([])
  await page.context().close()
})
