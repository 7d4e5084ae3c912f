/** The demo as a process, and its page in a real browser. */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import axeCore from 'axe-core'
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import type { DemoState } from '../../web/demo/demo-state.ts'
import { launchBrowser } from '../tools/browser.ts'
import { childrenOf } from '../tools/own-servers.ts'
import { closeLater } from '../tools/release.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { eventually } from '../tools/wait.ts'
import { type Demo, isRunning, startDemo } from './start-demo.ts'

let demo: Demo
let page: Page
const faults: string[] = []
beforeAll(async () => {
  demo = await startDemo()
  const browser = await launchBrowser()
  const context = closeLater(await browser.newContext({ locale: 'en-GB' }))
  page = await context.newPage()
  // The page shows refusals on purpose, and the browser reports each as a failed load.
  page.on('console', (message) => {
    if (!/status of 4(10|22|29)/.test(message.text())) faults.push(message.text())
  })
  page.on('pageerror', (error) => faults.push(String(error)))
  await page.goto(demo.url)
})

const words = (selector: string) => page.locator(selector).innerText()
const story = () => words('#story')
/** Presses the button and waits until the play has ended. */
async function play(trial: string): Promise<string> {
  await page.click(`[data-trial=${trial}]`)
  const isOver = () => page.locator('[data-trial][aria-disabled=true]').count()
  await expect.poll(isOver, { timeout: 90_000 }).toBe(0)
  return story()
}

const startOver = () =>
  Promise.all([page.waitForResponse('**/demo/start-over'), page.click('#start-over')])

const recordingFile = join(repositoryRoot, 'web/demo/recording.json')
/** If set, the recording for the page is made again. */
const isRecording = process.env.DEMO_RECORDING === '1'

test('the recording that the page plays is what the demo does', async () => {
  const to = '+8613800130001'
  const state = async () => (await demo.get('/demo/state', { key: null })).body as DemoState
  const ask = () =>
    page.evaluate(`fetch('/v1/captchas', {
      method: 'POST',
      headers: {
        authorization: 'Bearer ' + document.querySelector('postern-code').getAttribute('key'),
        'content-type': 'application/json',
      },
      body: JSON.stringify({ channel: 'sms', to: '${to}', scene: 'signup' }),
    }).then(({ status }) => status)`)
  const frames = [await state()]
  expect(await ask()).toBe(202)
  await expect.poll(async () => (await state()).notices[0]?.state).toBe('sent')
  frames.push(await state())
  // The page shows the message this long before the second request.
  if (isRecording) await page.waitForTimeout(3_000)
  expect(await ask()).toBe(429)
  frames.push(await state())
  const played = frames.map(({ worker, provider, notices, ...frame }) => ({
    ...frame,
    notices: notices.map(({ id, channel, to, state, attempts, createdAt, sentAt }) => ({
      ...{ id, channel, to, state, attempts, createdAt },
      ...(sentAt && { sentAt }),
    })),
  }))
  if (isRecording) writeFileSync(recordingFile, `${JSON.stringify(played)}\n`)
  const recorded = JSON.parse(readFileSync(recordingFile, 'utf8')) as typeof played
  expect(recorded.map(withoutChance)).toEqual(played.map(withoutChance))
  await startOver()
})

/** A state without times, ids and digits of codes. */
const withoutChance = (frame: object) =>
  JSON.parse(
    JSON.stringify(frame, (name, value) => {
      if (/^(id|noticeId|resetsInMs|durationMs|retryAfterMs|nowMs)$|[aA]t(Ms)?$/.test(name))
        return Array.isArray(value) ? value.length : name
      return name === 'text' ? value.replace(/\d{4}/, '0000') : value
    }),
  )

test.each(['no-preference', 'reduce'] as const)(
  'motion %s: until it is touched the page plays a recording, which changes nothing in the demo',
  async (reducedMotion) => {
    const other = await page.context().newPage()
    await other.emulateMedia({ reducedMotion })
    const before = await demo.messages()
    await other.goto(demo.url)
    const playing = other.locator('#playing')
    await expect.poll(() => playing.innerText()).toContain('types a number')
    await expect.poll(() => playing.innerText()).toContain('code arrives')
    expect(await other.locator('#phone-to').innerText()).toBe('+8613800130001')
    expect(await other.locator('.bubble').innerText()).toMatch(/\b\d{4} is your verification code/)
    await expect.poll(() => playing.innerText()).toContain('second request is refused')
    expect(await other.locator('#lanes .full .cross').count()).toBe(1)
    const left = other.locator('.full .left').first()
    expect(await left.innerText()).toMatch(/0 of 1 left · free in \d\d\.\d s/)
    const shown = await left.innerText()
    await expect.poll(() => left.innerText()).not.toBe(shown)
    const { body } = await demo.get('/demo/state', { key: null })
    expect(body.decisions).toEqual([])
    expect(await demo.messages()).toEqual(before)
    expect(await other.evaluate(shiftsSoFar)).toEqual([])
    await other.locator('h1').click()
    expect(await playing.innerText()).toBe('')
    await expect.poll(() => other.locator('#lanes .full').count()).toBe(0)
    expect(await other.locator('.postern-input').inputValue()).toBe('+8613800138000')
    await other.close()
  },
)

test('a visitor signs up: the code arrives on the phone, is filled in, and the server behind finds the pass good', async () => {
  await page.getByRole('button', { name: 'Send code' }).click()
  await page.getByRole('button', { name: /^Fill in \d{4}$/ }).click()
  await expect.poll(() => words('.postern-message')).toBe('Confirmed.')
  await page.getByRole('button', { name: 'Create account' }).click()
  await expect.poll(() => words('#signed-up')).toContain('Your server checked the pass.')
  await expect
    .poll(() => words('#lanes'))
    .toMatch(/recipient\s+1 per 60s\s+0 of 1 left · free in \d\d\.\d s/)
  await expect
    .poll(() => words('#ways'))
    .toMatch(/\+8613\*\*\*\*8000\s+accepted\s+sandbox ✓\s+sent · after/)
})

test('asks twice → refused with the wait, as a cross and a ring in the lane', async () => {
  expect(await play('twice')).toMatch(/Refused by the rule “recipient”\. .* in \d\d\.\d s/)
  // The welcome was for the previous visitor.
  expect(await words('#signed-up')).toBe('')
  await expect.poll(() => page.locator('#lanes .full .cross').count()).toBe(1)
  expect(await page.locator('#lanes .full .passes').count()).toBe(1)
  await expect
    .poll(() => words('#decisions'))
    .toMatch(/refused by recipient \(60s\), passes after [\d,]+ ms/)
})

test('three wrong guesses → the right code fails as well, and start over lets the visitor in again', async () => {
  const told = await play('guess')
  expect(told).toMatch(
    /Tries left: 1\.\n.*no longer valid\.\n.*\n.*refused too: this code is no longer valid/,
  )
  await expect.poll(() => words('#lanes')).toMatch(/guesses\s+9 per 15m\s+6 of 9 left/)
  await expect.poll(() => words('#decisions')).toMatch(/check\s+admitted[\s\S]*send\s+admitted/)
  await page.getByRole('button', { name: 'Start over' }).click()
  await expect.poll(() => page.locator('#lanes .full').count()).toBe(0)
  await expect.poll(() => words('#lanes')).toMatch(/guesses\s+9 per 15m\s+9 of 9 left/)
})

test('the provider is off → the other takes over, and from the sixth on nothing is tried in vain; on again', async () => {
  const told = await play('provider')
  expect(told.match(/“sandbox” fails, so “reserve” sends/g)).toHaveLength(5)
  expect(told).toContain('6. The circuit breaker is open, so “reserve” sends at once')
  await expect.poll(() => words('#provider-state')).toBe('sandbox off')
  expect(await play('provider')).toBe('“sandbox” answers again.')
})

test('the SMS fails → the form shows it with the call that began, whose code passes', async () => {
  expect(await play('call')).toMatch(/on its way\.\n.*Postern calls the phone/)
  await expect.poll(() => words('.postern-message')).toContain('The SMS failed. You get a call now')
  expect(await words('#ways')).toMatch(/failed · after (?!0\.000 s)/)
  await page.locator('#phone .fill').click()
  await expect.poll(() => words('.postern-message')).toContain('Confirmed.')
  await page.getByRole('button', { name: 'Start over' }).click()
  await page.getByRole('button', { name: 'Use email instead' }).waitFor()
})

test('the worker is killed → what was accepted meanwhile comes after the restart, once', async () => {
  const [killed] = childrenOf(demo.pid)
  expect(await play('worker')).toMatch(
    /stored\. .*\n.*new worker …\n.*once, .* s after the request\.$/,
  )
  const workers = childrenOf(demo.pid)
  expect(workers).toHaveLength(1)
  expect(workers).not.toContain(killed)
  const [newest] = await demo.messages()
  expect((await demo.messages()).filter(({ to }) => to === newest?.to)).toHaveLength(1)
})

test('the phone shows the messages of one number', async () => {
  const recipients = new Set((await demo.messages()).map(({ to }) => to))
  expect(recipients.size).toBeGreaterThan(2)
  const [newest] = (await demo.messages()).filter(({ channel }) => channel === 'sms')
  await expect.poll(() => words('#phone-to')).toBe(newest?.to)
  expect(await page.locator('.bubble').count()).toBe(1)
})

test.each([
  { width: 1440, height: 900, lang: 'en' },
  { width: 1280, height: 800, lang: 'en' },
  { width: 1280, height: 800, lang: 'zh' },
])(
  '$width×$height, $lang: what it is, the form, the phone and the lanes need no scrolling',
  async (how) => {
    const { width, height, lang } = how
    await page.setViewportSize({ width, height })
    await page.goto(`${demo.url}/?lang=${lang}`)
    await page.locator('.lane').nth(6).waitFor()
    for (const part of ['h1', '#sign-up', '.phone', '#lanes', '#copy']) {
      const box = await page.locator(part).boundingBox()
      const { y = -1, height: tall = 0 } = box ?? {}
      expect([part, y >= 0 && y + tall <= height]).toEqual([part, true])
    }
    if (lang === 'en') expect((await words('h1')).split(' ').length).toBeLessThanOrEqual(10)
  },
)

test('the tag to copy works: as curl, as fetch, and as HTML with what was chosen', async () => {
  await page.goto(demo.url)
  const choose = (name: string, value: string) => page.locator(`[name=${name}]`).selectOption(value)
  await choose('kind', 'curl')
  await choose('lang', 'zh')
  // A number that no other test has used.
  const command = (await words('#tag-code')).replace('+8613800138000', '+8613800138777')
  const { stdout } = await promisify(execFile)('sh', ['-c', command])
  expect(JSON.parse(stdout)).toMatchObject({ channel: 'sms', to: '+8613****8777' })
  await expect.poll(async () => (await demo.messages())[0]?.text).toMatch(/验证码/)
  await choose('kind', 'fetch')
  await choose('channels', 'email')
  expect(await page.evaluate(`(async () => (${await words('#tag-code')}).status)()`)).toBe(202)
  await choose('kind', 'tag')
  await choose('theme', 'dark')
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.click('#copy')
  const copied = (await page.evaluate('navigator.clipboard.readText()')) as string
  expect(copied).toBe(await words('#tag-code'))
  const other = await page.context().newPage()
  await other.route('**/copied', (route) =>
    route.fulfill({ body: copied, contentType: 'text/html' }),
  )
  await other.goto(`${demo.url}/copied`)
  await other.getByRole('textbox', { name: '邮箱' }).waitFor()
  const scheme = `getComputedStyle(document.querySelector('postern-code')).colorScheme`
  expect(await other.evaluate(scheme)).toBe('dark')
  await other.close()
})

test('the link of a mail fills the field, which waits for a press', async () => {
  await page.goto(demo.url)
  await startOver()
  const field = page.locator('postern-code')
  await field.getByRole('button', { name: 'Use email instead' }).click()
  await field.getByRole('textbox', { name: 'Email address' }).fill('link@example.com')
  await field.getByRole('button', { name: 'Send code' }).click()
  const letter = page.locator('.letter', { hasText: 'link@example.com' })
  await letter.getByRole('link').click()
  await field.getByRole('button', { name: 'Confirm', exact: true }).click()
  await field.getByText('Confirmed.').waitFor()
  expect(new URL(page.url()).hash).toBe('')
})

test('the console opens at the number just used, by a link that works once', async () => {
  await page.goto(demo.url)
  await startOver()
  await demo.post('/v1/captchas', { channel: 'sms', to: '+8613800138321' })
  await expect.poll(() => words('#followed')).toContain('+8613800138321')
  const link = page
    .context()
    .waitForEvent('request', (request) => request.url().includes('/demo/console/'))
  const [opened] = await Promise.all([page.context().waitForEvent('page'), page.click('#console')])
  await opened.getByRole('heading', { level: 1, name: '8321' }).waitFor()
  expect(new URL(opened.url()).port).not.toBe(new URL(demo.url).port)
  await opened.close()
  const used = (await link).url()
  expect((await fetch(used, { redirect: 'manual' })).status).toBe(410)
  await page.context().clearCookies()
})

test.each([
  { width: 320, scheme: 'light', lang: 'zh' },
  { width: 768, scheme: 'dark', lang: 'en' },
  { width: 1440, scheme: 'light', lang: 'en' },
  { width: 1440, scheme: 'dark', lang: 'zh' },
] as const)(
  '$width px, $scheme, $lang: axe finds nothing, nothing hangs over, nothing jumps',
  async (how) => {
    const { width, scheme, lang } = how
    await page.setViewportSize({ width, height: 900 })
    await page.emulateMedia({ colorScheme: scheme })
    // A page that is drawn before its window has the new size jumps once.
    await expect.poll(() => page.evaluate('innerWidth')).toBe(width)
    await page.goto(`${demo.url}/?lang=${lang}`)
    await page.locator('.lane').nth(6).waitFor()
    await page.locator('.way').first().waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)
    expect(await page.evaluate(bytesOfPage)).toBeLessThan(60_000)
    expect(await page.evaluate(shiftsSoFar)).toEqual([])
    await page.evaluate(axeCore.source)
    expect(
      await page.evaluate(
        'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))',
      ),
    ).toEqual([])
  },
)

/** Compressed sizes, without the states that the page fetches again and again. */
const bytesOfPage = `performance.getEntries()
  .filter(({ name }) => !name.endsWith('/state'))
  .reduce((sum, { encodedBodySize = 0 }) => sum + encodedBodySize, 0)`

/**
 * The elements that moved without an action of a person, as the browser counts them in each frame. The browser also
 * counts a new size of the window as an action of a person.
 */
const shiftsSoFar = `new Promise((resolve) => {
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const observer = new PerformanceObserver(() => {})
    observer.observe({ type: 'layout-shift', buffered: true })
    resolve(observer.takeRecords().filter((one) => !one.hadRecentInput).map(({ value, sources }) =>
      [value, ...sources.map(({ node }) => node?.outerHTML?.slice(0, 80))]))
  }))
})`

test('only the page itself may do things: other origins, names, forms and methods are refused, and do nothing', async () => {
  const [worker] = childrenOf(demo.pid)
  const { host, origin } = new URL(demo.url)
  const json = { 'content-type': 'application/json' }
  const kill = (headers: Record<string, string>, method = 'POST') =>
    fetch(`${demo.url}/demo/kill-worker`, {
      method,
      headers,
      ...(method === 'POST' ? { body: '{}' } : {}),
    })
  const refused = [
    kill({ ...json, origin: 'http://evil.example' }),
    kill({ ...json, origin: `http://${host}.evil.example` }),
    kill({ ...json, origin: 'null' }),
    kill(json),
    kill({ 'content-type': 'text/plain', origin }),
    kill({ ...json, origin, 'x-forwarded-for': '192.0.2.1' }),
  ]
  expect((await Promise.all(refused)).map(({ status }) => status)).toEqual(refused.map(() => 403))
  expect((await kill({}, 'GET')).status).toBe(404)
  const odd = { method: 'POST', headers: { ...json, origin }, body: '{"isOff":"yes"}' }
  expect((await fetch(`${demo.url}/demo/provider`, odd)).status).toBe(400)
  expect(isRunning(worker as number)).toBe(true)
  for (const path of ['/', '/demo/state', '/demo/page.js', '/demo/postern.svg']) {
    expect(await statusWithHost(path, 'evil.example')).toBe(403)
    expect(await statusWithHost(path, host)).toBe(200)
  }
})

test('Redis is away: what was pressed shows that it was not done, and leaves the form as it was', async () => {
  const other = await page.context().newPage()
  await other.goto(demo.url)
  for (const path of ['start-over', 'provider']) {
    await other.route(`**/demo/${path}`, (route) =>
      route.fulfill({ status: 503, json: { detail: 'Not now.' } }),
    )
  }
  const wordsOf = (selector: string) => other.locator(selector).innerText()
  const before = await wordsOf('postern-code')
  await other.click('#start-over')
  await expect.poll(() => wordsOf('#signed-up')).toContain('this step failed')
  expect(await wordsOf('postern-code')).toBe(before)
  await other.click('[data-trial=provider]')
  await expect.poll(() => wordsOf('#story')).toContain('this step failed')
  expect(await wordsOf('#story')).not.toContain('does not answer any more')
  await other.unroute('**/demo/start-over')
  await other.click('#start-over')
  await expect.poll(() => wordsOf('#signed-up')).toBe('')
  await other.close()
})

test('no error was written into the console', () => {
  expect(faults).toEqual([])
})

test('the worker is gone with a demo that is killed', async () => {
  const [worker = 0] = childrenOf(demo.pid)
  expect(isRunning(worker)).toBe(true)
  await demo.kill()
  await eventually(() => !isRunning(worker))
})

/** `fetch` sets the header Host itself. */
function statusWithHost(path: string, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get(demo.url + path, { headers: { host } }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    }).on('error', reject)
  })
}
