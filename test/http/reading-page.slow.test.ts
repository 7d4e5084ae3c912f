/** The API page in a real browser: in Postern's colours, light, dark and forced, and readable on every width. */
import { createServer } from 'node:http'
import axeCore from 'axe-core'
import express from 'express'
import { expect, test } from 'vitest'
import { createPostern } from '../../src/main/create-postern.ts'
import { launchBrowser, openPage } from '../tools/browser.ts'
import { testDatabase } from '../tools/database.ts'
import { listen } from '../tools/listen.ts'
import { noLimits, posternEnv, startPostern } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater } from '../tools/release.ts'

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

test('mounted by a host: a call that is tried goes to the mount', async () => {
  const [redis, database] = [await testRedis(), await testDatabase()]
  const environment = posternEnv({ redis, database, policyFile: { policies: noLimits } })
  const postern = closeLater(await createPostern({ environment, keyPrefix: redis.prefix }))
  const url = await listen(createServer(express().use('/otp', postern.router)))
  const { page } = await openPage(await launchBrowser(), `${url}/otp/docs#/jwks.json/getJwks`)
  const asked = page.waitForRequest(`${url}/otp/.well-known/jwks.json`)
  await page.getByRole('button', { name: 'Try it out' }).first().click()
  await page.getByRole('button', { name: 'Execute' }).click()
  expect((await (await asked).response())?.status()).toBe(200)
  await page.context().close()
})
