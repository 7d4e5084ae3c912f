/**
 * `npm run pictures`: makes the pictures of the README, docs/ and the site's first page again, in light and dark. It
 * starts a demo. The moving picture is the self-play of the demo page, and the others are made after a visit with
 * wrong codes.
 */
import { writeFileSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { animationOf, createEncoder, type Frame } from './harness/animation.ts'
import { openBrowser, startDemo } from './harness/demo.ts'

const schemes = ['light', 'dark'] as const
type Scheme = (typeof schemes)[number]
/** The times between two frames: typing, waiting for the message, reading the refusal. */
const typingStepMs = 120
const stepsMs = [...Array<number>(12).fill(typingStepMs), ...Array<number>(22).fill(500)]
/** All of the site's first page has 60 kB. */
const still = { quality: 0.25, resizeWidth: 960 }
const visitor = '+8613800138000'

const docs = new URL('../docs/', import.meta.url)
function keep(name: string, bytes: Buffer): void {
  writeFileSync(new URL(name, docs), bytes)
  console.log(`docs/${name}  ${Math.round(bytes.length / 1_000)} kB`)
}

const { demo, secretKey, stop } = await startDemo('--no-guide')
try {
  const browser = await openBrowser()
  // The demo plays by itself only while no limit has a use.
  for (const scheme of schemes) {
    await drawSelfPlay(browser, 'en', scheme)
    await drawSelfPlay(browser, 'zh', scheme)
  }
  const page = await openDemo(browser, 1_100)
  // A touch ends the self-play. The page then suggests the visitor's number.
  await page.locator('h1').click()
  await page.getByRole('button', { name: 'Send code' }).click()
  await page.locator('[data-step=code]').waitFor()
  await page.locator('#texts li').first().waitFor()
  await drawBoth(page, 'code-field', '.form')
  await guessAndSendAgain()
  await page.locator('#lanes .lane', { hasText: 'recipient' }).first().waitFor()
  await page.reload()
  await page.locator('#decisions li').nth(3).waitFor()
  await drawBoth(page, 'limits', '.limits')
  const [story] = await Promise.all([page.waitForEvent('popup'), page.locator('#console').click()])
  await story.setViewportSize({ width: 1_120, height: 860 })
  await story.locator('main').waitFor()
  await drawBoth(story, 'console-story')
  await browser.close()
} finally {
  await stop()
}

async function openDemo(browser: Browser, width: number): Promise<Page> {
  const context = await browser.newContext({ viewport: { width, height: 640 } })
  const page = await context.newPage()
  await page.goto(`${demo}/?lang=en`)
  return page
}

/** A picture of the page, or of one element, in both schemes. */
async function drawBoth(page: Page, name: string, selector?: string): Promise<void> {
  for (const colorScheme of schemes) {
    await page.emulateMedia({ colorScheme })
    const drawn = selector ? page.locator(selector).first() : page
    keep(`images/${name}-${colorScheme}.png`, await drawn.screenshot())
  }
}

async function guessAndSendAgain(): Promise<void> {
  const post = (path: string, body: object) =>
    fetch(`${demo}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ channel: 'sms', to: visitor, scene: 'signup', ...body }),
    })
  for (const code of ['0000', '0001', '0002']) await post('/v1/captchas/check', { code })
  await post('/v1/captchas', {})
}

/**
 * One round of the self-play, by a clock that moves from frame to frame, and the refusal as a small still picture.
 */
async function drawSelfPlay(
  browser: Browser,
  language: 'en' | 'zh',
  colorScheme: Scheme,
): Promise<void> {
  const viewport = { width: 1_280, height: 780 }
  const context = await browser.newContext({ viewport, deviceScaleFactor: 1.25, colorScheme })
  const page = await context.newPage()
  await page.clock.install()
  await page.goto(`${demo}/?lang=${language}`)
  await page.locator('#playing').filter({ hasText: /\S/ }).waitFor()
  await page.clock.pauseAt((await page.evaluate<number>('Date.now()')) + 500)
  // A part of this round has passed. The pictures begin with the first digits of the next round.
  const input = page.locator('.postern-input')
  do await page.clock.runFor(typingStepMs)
  while ((await input.inputValue()).length > 3)

  const encode = await createEncoder(await context.newPage(), { quality: 0.75 })
  const frames: Frame[] = []
  let refusal: Buffer | undefined
  for (const durationMs of stepsMs) {
    const picture = await page.screenshot()
    if ((await page.locator('#lanes .full').count()) > 0) refusal = picture
    const patch = await encode(picture)
    const last = frames.at(-1)
    if (patch) frames.push({ ...patch, durationMs })
    else if (last) last.durationMs += durationMs
    await page.clock.runFor(durationMs)
  }
  const name = `public/demo-${language === 'zh' ? 'zh-' : ''}${colorScheme}`
  keep(`${name}.webp`, animationOf(frames))
  const encodeStill = await createEncoder(await context.newPage(), still)
  const small = refusal && (await encodeStill(refusal))
  if (!small) throw new Error('the self-play came to no refusal')
  keep(`${name}-still.webp`, small.webp)
  await context.close()
}
