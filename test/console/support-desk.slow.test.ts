/**
 * The console at a support desk, in a real browser. Three people ask why their code did not come, and the first lines
 * of a page answer each. Then the forms of use: keyboard, phone, both colour schemes, Chinese, no script.
 */
import { createServer } from 'node:http'
import axeCore from 'axe-core'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { launchBrowser } from '../tools/browser.ts'
import { listen } from '../tools/listen.ts'
import { eventually } from '../tools/wait.ts'
import { openConsole } from './open-console.ts'

const rejecting = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(422).end('{}'))
})
const rejectingUrl = await listen(rejecting)
const secret = 'a secret of more than sixteen'

const { postern, createOperator } = await openConsole({
  policyFile: {
    providers: {
      box: { kind: 'sandbox' },
      strict: { kind: 'webhook', url: `${rejectingUrl}/send`, secret },
      dead: { kind: 'webhook', url: 'http://127.0.0.1:9/none', secret },
    },
    routes: {
      sms: [{ match: { country: 'HK' }, use: ['strict'] }, { use: ['box'] }],
      email: [{ match: { template: 'welcome' }, use: ['dead'] }, { use: ['box'] }],
    },
  },
})
const { adminUrl } = postern
const { token } = await createOperator()
const browser = await launchBrowser()

interface Look {
  width?: number
  colorScheme?: 'light' | 'dark'
  forcedColors?: 'active'
  locale?: string
  javaScriptEnabled?: boolean
}

/** A page that was signed in by keyboard alone. An error in the browser's console fails the test. */
async function openDesk(look: Look = {}) {
  const { width = 1_440, ...rest } = look
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    timezoneId: 'Asia/Shanghai',
    ...rest,
  })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.goto(adminUrl)
  await page.locator('#key').fill(token)
  await page.keyboard.press('Enter')
  await page.locator('#q').waitFor()
  return { context, page, complaints }
}

async function ask(page: Page, text: string): Promise<void> {
  await page.locator('#q').fill(text)
  await page.keyboard.press('Enter')
  await page.locator('.findings').waitFor()
}

const findings = (page: Page) => page.locator('.findings strong').allTextContents()
const send = (to: string) => postern.post('/v1/captchas', { channel: 'sms', to })
const stateOf = async (id: string) => (await postern.get(`/v1/notices/${id}`)).body.state

test('three people ask; reset and reveal are recorded; the page keeps itself fresh', async () => {
  const [eager, refused, late] = ['+8613800138001', '+85261234567', 'ada@example.com']
  await send(eager)
  await send(eager)
  const { body: rejected } = await send(refused)
  const { body: expired } = await postern.post('/v1/notices', {
    ...{ channel: 'email', to: late, template: 'welcome' },
    params: { name: 'Ada' },
  })
  const endAfterAttempt = `UPDATE notice SET expires_at = now() WHERE id = $1 AND jsonb_array_length(attempts) > 0`
  await eventually(
    async () => (await postern.database.pool.query(endAfterAttempt, [expired.id])).rowCount === 1,
  )
  await eventually(async () => (await stateOf(rejected.id)) === 'failed')
  await eventually(async () => (await stateOf(expired.id)) === 'expired')
  const { page, complaints } = await openDesk()

  // "Nothing comes": too many requests.
  await eventually(async () => {
    await ask(page, '+86 138 0013 8001')
    return (await findings(page))[0]?.startsWith('The rule “recipient” refuses requests')
  })
  // "Nothing comes": the provider refuses the message.
  await ask(page, '+852 6123-4567')
  expect(await findings(page)).toEqual(['Delivery failed'])
  expect(await page.locator('.findings p').textContent()).toContain('Every provider of the route')
  expect(await page.locator('.timeline').textContent()).toContain('strict: rejected it')
  // "It came much too late, or never": found by its id.
  await ask(page, expired.id)
  expect(await findings(page)).toEqual(['Expired before it was sent'])
  expect(await page.locator('.timeline').textContent()).toContain(
    'dead: not available, did not accept it',
  )

  // The slash key leads to the search from every page. The first person gets another code.
  await page.locator('h1').click()
  await page.keyboard.press('/')
  expect(await page.locator('#q:focus').count()).toBe(1)
  await ask(page, eager)
  await page.getByLabel('Limits: a new code').check()
  await page.locator('#reset-reason').fill('ticket 4711')
  await page.keyboard.press('Enter')
  await page.getByText('Done and recorded.').waitFor()
  await eventually(async () => (await send(eager)).status === 202)

  await page.getByText('Show the full recipient').click()
  await page.locator('#reveal-reason').fill('ticket 4712')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: eager }).waitFor()
  await page.goto(`${adminUrl}/operations`)
  const done = await page.locator('tbody').textContent()
  expect(done).toMatch(/anna.*shown in full.*ticket 4712.*anna.*limits reset.*ticket 4711/)
  expect(complaints).toEqual([])
})

/** The page's clock also ends requests that take too long. An answer needs real time to arrive. */
const unhurried = { everyMs: 400 }

test('a page on a screen follows what happens, and leaves alone what its reader does', async () => {
  const to = '+8613800138002'
  const { page, context } = await openDesk()
  await page.clock.install()
  await ask(page, to)
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url()))
  const isFresh = () => page.locator('.timeline').textContent()
  await page.getByText('rules below the limit').click()
  await page.locator('#reset-reason').fill('half a rea')
  const { body } = await send(to)
  await postern.messageFor(body.id)
  await eventually(async () => {
    await page.clock.runFor(5_000)
    return (await isFresh())?.includes('box: accepted it')
  }, unhurried)
  expect(await page.locator('#reset-reason').inputValue()).toBe('half a rea')
  expect(await page.locator('details:has(.limits)').getAttribute('open')).not.toBe(null)
  expect(await page.locator('#reset-reason:focus').count()).toBe(1)
  // In the reader's time zone, with the exact time beside it.
  const time = page.locator('.timeline time').first()
  expect(await time.textContent()).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)
  expect(await time.getAttribute('title')).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC$/)

  // While the page is hidden, it asks for nothing. When it is shown again, it asks at once.
  const setHidden = (isHidden: boolean) =>
    page.evaluate(`
      Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))`)
  await setHidden(true)
  asked.length = 0
  await page.clock.runFor(600_000)
  expect(asked).toEqual([])
  await setHidden(false)
  await eventually(() => asked.length > 0)

  // Without an answer, the page shows since when, and asks less and less often.
  const stale = () => page.locator('[data-stale]').textContent()
  await context.setOffline(true)
  await eventually(async () => {
    await page.clock.runFor(5_000)
    return (await stale())?.startsWith('Not up to date')
  }, unhurried)
  await context.setOffline(false)
  await eventually(async () => {
    await page.clock.runFor(5_000)
    return (await stale()) === ''
  }, unhurried)

  // Another operator signed in, in another tab: the name and the forms are theirs.
  const berta = await createOperator({ name: 'berta' })
  const other = await context.newPage()
  await other.goto(`${adminUrl}/login`)
  await other.locator('#key').fill(berta.token)
  await other.keyboard.press('Enter')
  await other.locator('#q').waitFor()
  await eventually(async () => {
    await page.clock.runFor(5_000)
    return (await page.locator('.key-name').textContent())?.includes('berta')
  }, unhurried)

  // Signed out in another tab: the page leads to the sign-in.
  await context.clearCookies()
  await page.clock.runFor(5_000)
  await page.locator('#key').waitFor()
})

test('the key / leads back to the search; in the search it is a character', async () => {
  const { page } = await openDesk()
  await ask(page, '+8613800138003')
  const isFocused = () => page.locator('#q:focus').count()
  const asked = await page.locator('#q').inputValue()
  await page.keyboard.press('x')
  expect(await isFocused()).toBe(0)
  await page.keyboard.press('/')
  expect(await isFocused()).toBe(1)
  expect(await page.locator('#q').inputValue()).toBe(asked)
  await page.keyboard.press('/')
  expect(await page.locator('#q').inputValue()).toContain('/')
})

// Every page in at least one width and colour scheme, and every width and scheme at least once. All combinations
// would take a minute.
test.each([
  { width: 320, colorScheme: 'light', locale: 'de-AT', paths: ['/', '/notices', '/keys'] },
  { width: 768, colorScheme: 'dark', locale: 'zh-CN', paths: ['/notices', '/rules'] },
  { width: 768, colorScheme: 'light', locale: 'de-AT', paths: ['/delivery', '/rules'] },
  {
    width: 1_280,
    colorScheme: 'dark',
    forcedColors: 'active',
    locale: 'en-GB',
    paths: ['/delivery', '/notices'],
  },
  { width: 1_440, colorScheme: 'light', locale: 'zh-CN', paths: ['/', '/operations'] },
  { width: 320, colorScheme: 'dark', locale: 'zh-CN', paths: ['/delivery', '/events'] },
] as const)(
  '$width px, $colorScheme, $locale: axe finds nothing, nothing is cut off, and a state is in one line',
  async ({ paths, ...look }) => {
    const to = '+8613800138003'
    await send(to)
    await send(to)
    await postern.post('/v1/captchas', { channel: 'email', to: 'ada@shopofadomainname.example' })
    const { page, context } = await openDesk(look)
    const check = async (name: string) => {
      await page.evaluate(axeCore.source)
      const run = await page.evaluate('axe.run()')
      const { violations } = run as { violations: { id: string; nodes: { html: string }[] }[] }
      const found = {
        name,
        axe: violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`),
        sideways: await page.evaluate(`document.documentElement.scrollWidth > innerWidth ||
          [...document.querySelectorAll('table')].some(({ offsetWidth, parentElement }) =>
            offsetWidth > parentElement.clientWidth - 2 * parseFloat(getComputedStyle(parentElement).paddingLeft))`),
        broken: await page.evaluate(`[...document.querySelectorAll('td .badge')]
          .filter(({ clientHeight }) => clientHeight > 30).map(({ innerText }) => innerText)`),
      }
      expect(found).toEqual({ name, axe: [], sideways: false, broken: [] })
      const text = (await page.locator('body').textContent()) ?? ''
      if (look.locale === 'zh-CN') expect(text).toMatch(/[\u4e00-\u9fff]/)
      if (look.locale === 'de-AT') expect(text).toContain('Zum Inhalt springen')
    }
    for (const path of paths) {
      await page.goto(adminUrl + path)
      await check(path)
    }
    await page.goto(adminUrl)
    await ask(page, to)
    for (const summary of await page.locator('summary').all()) await summary.click()
    await check('story')
    await context.clearCookies()
    await page.goto(adminUrl)
    await check('door')
  },
  60_000,
)

test('without script: search, reset with a mistake and without, another page, out', async () => {
  const to = '+8613800138004'
  await send(to)
  const { page } = await openDesk({ javaScriptEnabled: false })
  await ask(page, to)
  expect(await page.locator('footer').textContent()).toContain('Times are in UTC.')
  await page.locator('#reset-reason').fill('ticket 1')
  await page.keyboard.press('Enter')
  await page.getByText('Choose what to reset.').waitFor()
  await page.getByLabel('Limits: a new code').check()
  await page.locator('#reset-reason').fill('ticket 1')
  await page.getByRole('button', { name: 'Reset' }).click()
  await page.getByText('Done and recorded.').waitFor()
  await page.getByRole('link', { name: 'Notices' }).click()
  await page.getByLabel('State').selectOption('failed')
  await page.getByRole('button', { name: 'Filter' }).click()
  expect(page.url()).toContain('state=failed')
  await page.getByRole('link', { name: '中文' }).click()
  await page.getByRole('button', { name: '退出' }).click()
  await page.locator('#key').waitFor()
})
