/** The code field with several ways to the person, before a service that answers by a function of the test. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { launchBrowser } from '../tools/browser.ts'
import {
  type Asked,
  createMockedPages,
  field,
  newCode,
  passed,
  refused,
  type Service,
  textsAtOnce,
} from './field-mocked.ts'
import { ask, partsOf, said } from './field-page.ts'

const open = await createMockedPages(await launchBrowser())

const to = '+8613800138000'
const email = 'ada@shop.test'
const workflow = `workflow="default" email="${email}"`
/** Begins with the time of the send, as every id. */
let id = ''
const newId = () =>
  `${Date.now().toString(16).padStart(12, '0').replace(/.{8}/, '$&-')}-7059-a113-e76dd047e128`

const ways = ['sms', 'voice', 'email']

/** The answer when way `index` has begun. */
function wayOf(index: number, more: object = {}) {
  const way = { channel: ways[index - 1], index, of: 3, next: ways[index] }
  return newCode({ id, channel: undefined, workflow: 'default', way, ...more })
}

const callOf = ({ path }: Asked) => path.replace(/.*\//, '')
/** `latest` is the way that `next` and `way` answer. */
const service =
  (latest: () => number, others: Service = () => passed): Service =>
  (one) => {
    const call = callOf(one)
    if (call === 'captchas') return wayOf(1)
    return ['next', 'way'].includes(call) ? wayOf(latest()) : others(one)
  }

const nextLink = (page: Page, name: string) => page.getByRole('button', { name })
/** The field reads the clock each time it draws itself. */
const drawnAgain = (page: Page) =>
  page.evaluate(`new Promise((resolve) => {
    const now = Date.now
    let times = 0
    Date.now = () => (++times === 30 && resolve(), now())
  })`)
const focused = (page: Page) => page.evaluate('document.activeElement.className')
const stopped = `<script>{ const now = Date.now(); Date.now = () => now }</script>`
const laterBy = (page: Page, ms: number) =>
  page.evaluate(`{ const now = Date.now; Date.now = () => now() + ${ms} }`)

async function send(page: Page): Promise<void> {
  id = newId()
  await ask(page, to)
  await expect.poll(() => partsOf(page).code.isVisible()).toBe(true)
}

test('a workflow: the next way is a link after the wait; its key stays until an answer; any code is checked by the id, and the form has the address of the code', async () => {
  let isLost = true
  const claims = Buffer.from(JSON.stringify({ channel: 'email' })).toString('base64url')
  const right = { ...passed, body: { ...passed.body, pass: `e30.${claims}.x` } }
  const { page, asked } = await open(`<form>${field(workflow)}</form>`, (one) => {
    const call = callOf(one)
    if (call === 'check') return right
    if (call === 'captchas') return wayOf(1, { resendAt: new Date(Date.now() + 60_000) })
    if (call === 'way') return wayOf(1)
    return isLost ? 'lost' : wayOf(2)
  })
  await send(page)
  const { channel: _, ...sent } = { channel: '', workflow: 'default', email, to, scene: 'signup' }
  expect(asked[0]?.body).toEqual({ ...sent, locale: 'en' })
  expect(await nextLink(page, 'Call me instead').isVisible()).toBe(false)
  await laterBy(page, 61_000)
  await nextLink(page, 'Call me instead').click()
  await said(page).toContain('does not answer')
  isLost = false
  await nextLink(page, 'Call me instead').click()
  await said(page).toContain('You get a call now with a code of 4 digits.')
  const next = asked.filter((one) => callOf(one) === 'next')
  expect(next.map(({ key }) => key)).toEqual([next[0]?.key, next[0]?.key])
  expect(next[0]?.key).toMatch(/^[\w-]{36}$/)
  expect(await nextLink(page, 'Use email instead').isVisible()).toBe(true)
  await page.keyboard.type('1234')
  await said(page).toContain('Confirmed.')
  expect(asked.at(-1)).toMatchObject({ path: '/v1/captchas/check', body: { id, code: '1234' } })
  expect(asked.at(-1)?.body).not.toHaveProperty('channel')
  const carried = `[...new FormData(document.querySelector('form')).values()].slice(1)`
  expect(await page.evaluate(carried)).toEqual(['email', email])
})

test('a way fails → the field asks in growing pauses, reports it with the way that began, and moves no focus; after a reload too', async () => {
  let latest = 1
  let isHeld = false
  const { page, asked } = await open(`${stopped}${field(workflow)}<input id="other">`, (one) =>
    isHeld ? new Promise<never>(() => {}) : service(() => latest)(one),
  )
  await send(page)
  const questions = () => asked.filter((one) => callOf(one) === 'way').length
  await page.locator('#other').focus()
  await laterBy(page, 3_000)
  await expect.poll(questions).toBe(1)
  await laterBy(page, 5_000)
  latest = 2
  await laterBy(page, 1_000)
  await said(page).toContain('The SMS failed. You get a call now with a code of 4 digits.')
  expect(questions()).toBe(2)
  expect(await page.evaluate('document.activeElement.id')).toBe('other')
  expect(await partsOf(page).message.getAttribute('role')).toBe('status')
  await page.reload()
  await said(page).toContain('You get a call now')
  await drawnAgain(page)
  expect(questions()).toBe(2)
  isHeld = true
  await laterBy(page, 3_000)
  await expect.poll(questions).toBe(3)
  await laterBy(page, 100_000)
  await drawnAgain(page)
  expect(questions()).toBe(3)
})

test('no question while the page is hidden, digits are typed, or no way is left', async () => {
  let latest = 1
  const { page, asked } = await open(
    field(workflow),
    service(() => latest),
  )
  const questions = () => asked.filter((one) => callOf(one) === 'way').length
  await send(page)
  await page.evaluate(
    `Object.defineProperty(document, 'hidden', { value: true, configurable: true })`,
  )
  await laterBy(page, 10_000)
  await drawnAgain(page)
  expect(questions()).toBe(0)
  await partsOf(page).code.fill('12')
  await page.evaluate('delete document.hidden')
  await drawnAgain(page)
  expect(questions()).toBe(0)
  latest = 3
  await partsOf(page).code.fill('')
  await said(page).toContain('The SMS failed. A code of 4 digits is on its way.')
  expect(await page.locator('.postern-label:visible').textContent()).toContain(email)
  await laterBy(page, 100_000)
  await drawnAgain(page)
  expect(questions()).toBe(1)
})

test.each([
  [409, 'no_more_ways'],
  [403, 'destination_not_allowed'],
  [422, 'invalid_recipient'],
])(
  'the next way is refused with %i %s → its link goes, the code stays and has the focus, and a new one can be requested',
  async (status, code) => {
    const { page } = await open(field(workflow), (one) =>
      callOf(one) === 'next' ? refused(status, code) : wayOf(1),
    )
    await send(page)
    await nextLink(page, 'Call me instead').click()
    await said(page).toContain(
      'cannot be sent this way now. If it does not arrive, request a new one.',
    )
    expect(await nextLink(page, 'Call me instead').isVisible()).toBe(false)
    expect(await partsOf(page).code.isVisible()).toBe(true)
    expect(await focused(page)).toBe('postern-code')
  },
)

test('a limit refuses the next way → its link waits, a new code does not, and the code has the focus', async () => {
  const { page } = await open(field(workflow), (one) =>
    callOf(one) === 'next' ? refused(429, 'limited', { retryAfterMs: 60_000 }) : wayOf(1),
  )
  await send(page)
  await nextLink(page, 'Call me instead').click()
  await said(page).toContain(
    'cannot be sent this way now. If it does not arrive, request a new one.',
  )
  expect(await nextLink(page, 'Call me instead').isVisible()).toBe(false)
  expect(await nextLink(page, 'Send again').textContent()).toBe('Send again')
  expect(await focused(page)).toBe('postern-code')
  await laterBy(page, 61_000)
  await expect.poll(() => nextLink(page, 'Call me instead').isVisible()).toBe(true)
})

test('a new code was requested without an answer → no next way of an unknown verification', async () => {
  let isLost = false
  const { page } = await open(field(workflow), () => (isLost ? 'lost' : wayOf(1)))
  await send(page)
  await nextLink(page, 'Call me instead').waitFor()
  isLost = true
  await nextLink(page, 'Send again').click()
  await said(page).toContain('does not answer')
  expect(await nextLink(page, 'Call me instead').isVisible()).toBe(false)
})

test('the answer of the next way is lost → the question finds it, and reports no failure', async () => {
  let latest = 1
  const { page } = await open(field(workflow), (one) =>
    callOf(one) === 'next' ? 'lost' : service(() => latest)(one),
  )
  await send(page)
  await nextLink(page, 'Call me instead').click()
  await said(page).toContain('does not answer')
  latest = 2
  await laterBy(page, 100_000)
  await said(page).toContain('You get a call now')
  expect(await partsOf(page).message.textContent()).not.toContain('failed')
})

test('the verification ended elsewhere → the code is gone, and a new one can be requested', async () => {
  const { page } = await open(field(workflow), (one) =>
    callOf(one) === 'next' ? refused(410, 'code_gone') : wayOf(1),
  )
  await send(page)
  await nextLink(page, 'Call me instead').click()
  await said(page).toContain('This code is no longer valid. Request a new one.')
  expect(await focused(page)).toContain('postern-again')
})

test('several channels to one number → each link leads to the next one and keeps the number; mail has another input', async () => {
  const { page, asked } = await open(
    field('channels="sms,voice,whatsapp,email" country="CN"'),
    (one) => newCode({ channel: one.body.channel }),
  )
  const { address } = partsOf(page)
  await send(page)
  await nextLink(page, 'Call me instead').click()
  expect(await address.inputValue()).toContain('8000')
  await partsOf(page).send.click()
  await said(page).toContain('You get a call now')
  expect(asked[1]?.body).toMatchObject({ channel: 'voice', to })
  await nextLink(page, 'Send it by WhatsApp').click()
  expect(await address.getAttribute('type')).toBe('tel')
  await partsOf(page).send.click()
  await said(page).toContain('A code of 4 digits comes by WhatsApp.')
  await nextLink(page, 'Use email instead').click()
  expect(await address.getAttribute('type')).toBe('email')
  expect(await address.inputValue()).toBe('')
})

test('the page sets a workflow at a field for mail → it asks for a number', async () => {
  const { page } = await open(field('channels="email"'), () => wayOf(1))
  expect(await partsOf(page).address.getAttribute('type')).toBe('email')
  await page.evaluate(`document.querySelector('postern-code').setAttribute('workflow', 'default')`)
  expect(await partsOf(page).address.getAttribute('type')).toBe('tel')
})

test('the number is the input of the page → it is the input of every channel to a phone', async () => {
  const body = `<input id="mine" type="tel" value="${to}">${field('for="mine" channels="email,voice,whatsapp"')}`
  const { page, asked } = await open(body, () => newCode({ channel: 'voice' }))
  expect(await partsOf(page).address.isVisible()).toBe(false)
  expect(await page.locator('.postern-label:visible').textContent()).toContain('at \u2068+86')
  await partsOf(page).send.click()
  await said(page).toContain('You get a call now')
  expect(asked[0]?.body).toMatchObject({ channel: 'voice', to })
})

test('the texts did not arrive → a refusal has the sentence of the service', async () => {
  const detail = 'Zu viele Codes.'
  const { page } = await open(
    field(),
    () => refused(429, 'limited', { detail, retryAfterMs: 60_000 }),
    { texts: (route) => route.abort() },
  )
  await ask(page, to)
  await said(page).toContain(detail)
})

test('the texts did not arrive → a link of a message shows its code, and the next field asks again', async () => {
  let questions = 0
  const { page } = await open(field(), () => 'lost', {
    texts: (route, language) => (++questions === 1 ? route.abort() : textsAtOnce(route, language)),
  })
  await page.evaluate(`location.hash = 'postern-code=4821&id=0-1'`)
  await said(page).toBe('4821')
  const nextField = () =>
    page.evaluate(`{
      const one = document.querySelector('postern-code')
      one.after(one.cloneNode())
      one.remove()
    }`)
  await expect.poll(() => nextField().then(() => questions)).toBe(2)
  await page.evaluate(`location.hash = 'postern-code=4822&id=0-2'`)
  await said(page).toContain('Type this code where you asked for it: 4822')
})
