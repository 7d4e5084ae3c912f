/** A page whose host name leads to the admin port, in a real browser. No page can leave the Host header out. */
import { expect, test } from 'vitest'
import { launchBrowser } from '../tools/browser.ts'
import { startPostern } from '../tools/postern.ts'

const postern = await startPostern()
const browser = await launchBrowser()

async function statusFrom(host: string, init: RequestInit): Promise<number> {
  const page = await browser.newPage()
  try {
    await page.goto(`http://${host}:${new URL(postern.adminUrl).port}/livez`)
    return await page.evaluate(
      async (asked) => (await fetch('/metrics', asked as RequestInit)).status,
      init as object,
    )
  } finally {
    await page.close()
  }
}

test.each([
  {},
  { headers: { 'accept-language': '' }, referrerPolicy: 'no-referrer' },
  { headers: { 'accept-language': ' ', 'user-agent': 'Prometheus/3.5.0' } },
  { credentials: 'omit', mode: 'same-origin' },
] satisfies RequestInit[])('rebound: the metrics are refused to fetch with %j', async (init) => {
  expect(await statusFrom('evil.example', init)).toBe(403)
})

test('a person at localhost reads them', async () => {
  expect(await statusFrom('localhost', {})).toBe(200)
})
