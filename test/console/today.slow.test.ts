/**
 * The first page and the parts that all pages share, in a real browser: a phone and a desk, light and dark, with
 * script and without.
 */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { hourMs } from '../../src/notice/hour-counts.ts'
import { launchBrowser } from '../tools/browser.ts'
import { insertNotices } from '../tools/notices.ts'
import { eventually } from '../tools/wait.ts'
import { openConsole } from './open-console.ts'

const { postern, createOperator } = await openConsole()
const { adminUrl } = postern
const { token } = await createOperator({ name: 'anna.of.the.night.desk' })
const browser = await launchBrowser()

// Each hour has more messages than the one before, and in the last two hours many failed.
for (let hour = 0; hour < 24; hour++) {
  const states = Array.from({ length: 26 - hour }, (_, at) =>
    hour < 2 && at % 2 ? 'failed' : 'delivered',
  )
  const at = new Date(Date.now() - hour * hourMs)
  await insertNotices(
    postern.database.pool,
    states.map((state) => ({
      ...{ id: newId(at.getTime()), kind: 'captcha', template: 'captcha', state },
      ...{ provider: 'sandbox', created_at: at, expires_at: at, sent_at: at, finished_at: at },
    })),
  )
}
for (const _ of [1, 2, 3]) {
  await postern.post('/v1/captchas', { channel: 'sms', to: '+8613800138001' })
}

/** The key may see the figures and the refusals. */
async function openToday(page: Page): Promise<void> {
  await page.goto(adminUrl)
  await page.locator('#key').fill(token)
  await page.keyboard.press('Enter')
  await page.locator('#q').waitFor()
  await eventually(async () => {
    await page.goto(adminUrl)
    return (
      (await page.locator('#refused td').count()) > 0 && (await page.locator('.bars').count()) > 0
    )
  })
}

const styleOf = (page: Page, selector: string, name: string) =>
  page.evaluate(`getComputedStyle(document.querySelector('${selector}')).${name}`)
const isSideways = (page: Page) =>
  page.evaluate('document.documentElement.scrollWidth > innerWidth')

test.each([
  { width: 360, colorScheme: 'light', locale: 'en-GB', javaScriptEnabled: true },
  { width: 360, colorScheme: 'dark', locale: 'zh-CN', javaScriptEnabled: false },
  { width: 1_440, colorScheme: 'dark', locale: 'en-GB', javaScriptEnabled: false },
  { width: 1_440, colorScheme: 'light', locale: 'zh-CN', javaScriptEnabled: true },
] as const)(
  '$width px, $colorScheme, $locale, script $javaScriptEnabled: search, what is wrong, figures and charts; every page fits',
  async ({ width, ...look }) => {
    const context = await browser.newContext({ viewport: { width, height: 740 }, ...look })
    const page = await context.newPage()
    await openToday(page)

    // The search and the first problem are visible without scrolling.
    for (const selector of ['#q', '.findings li a']) {
      const box = await page.locator(selector).first().boundingBox()
      expect((box?.y ?? 1_000) + (box?.height ?? 0)).toBeLessThan(740)
    }
    // A bar for each hour, in separate colours, with failures below the line.
    expect(await page.locator('.bars g').count()).toBe(24)
    const colours = await Promise.all([
      styleOf(page, '.bars .sent', 'fill'),
      styleOf(page, '.bars .failed', 'fill'),
      styleOf(page, 'section', 'backgroundColor'),
    ])
    expect(new Set(colours).size).toBe(3)
    const [sent, failed] = await Promise.all(
      ['.sent', '.failed'].map((name) =>
        page.locator(`.bars g:last-of-type ${name}`).boundingBox(),
      ),
    )
    expect(failed?.y).toBeGreaterThanOrEqual((sent?.y ?? 0) + (sent?.height ?? 0))

    for (const path of [
      '/',
      '/notices',
      '/delivery',
      '/rules',
      '/keys',
      '/events',
      '/operations',
    ]) {
      await page.goto(adminUrl + path)
      expect(await isSideways(page)).toBe(false)
      const current = await page.locator('nav [aria-current]').boundingBox()
      expect(current?.x).toBeGreaterThanOrEqual(0)
      expect((current?.x ?? width) + (current?.width ?? 0)).toBeLessThanOrEqual(width)
      expect(await page.locator('.key-name').innerText()).toContain('anna.of.the.night.desk')
    }
    for (const time of await page.locator('main time').allTextContents()) {
      expect(time).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)
    }

    await page.goto(`${adminUrl}/notices`)
    for (const control of await page.locator('.filter :is(select, input, button)').all()) {
      const box = await control.boundingBox()
      expect((box?.x ?? width) + (box?.width ?? 0)).toBeLessThanOrEqual(width)
    }
    // The width of mm/dd/yyyy, --:-- -- and the icon beside it.
    const until = await page.locator('.filter input').boundingBox()
    expect(until?.width).toBeGreaterThan(205)

    await page.goto(`${adminUrl}/delivery`)
    expect(await styleOf(page, 'td.number', 'textAlign')).toBe('right')
    await context.close()
  },
  60_000,
)
