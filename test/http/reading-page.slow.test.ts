/** The API page in a real browser: in our colours, light and dark, and readable by everybody. */
import axeCore from 'axe-core'
import { expect, test } from 'vitest'
import { launchBrowser, openPage } from '../tools/browser.ts'
import { startPostern } from '../tools/postern.ts'

test('axe finds nothing, light and dark, with all closed and with one call open', async () => {
  const postern = await startPostern({ roles: { api: true, worker: false } })
  const { page, messages } = await openPage(await launchBrowser(), `${postern.url}/docs`)
  const call = page.locator('.opblock-summary-control').first()
  await call.waitFor()
  await page.evaluate(axeCore.source)
  const look = () =>
    page.evaluate(`axe.run().then(({ violations }) => [
      violations.map(({ id, nodes }) => [id, nodes[0].html]),
      document.documentElement.scrollWidth - innerWidth,
    ])`)
  for (const isOpen of [false, true]) {
    if (isOpen) await call.click()
    await expect.poll(() => page.locator('.opblock-body').count()).toBe(Number(isOpen))
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await look()).toEqual([[], 0])
    }
  }
  // A link to a call opens it.
  expect(new URL(page.url()).hash).toBe('#/captchas/sendCaptcha')
  expect(messages).toEqual([])
  await page.context().close()
})
