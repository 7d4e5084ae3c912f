/** The field with an address that the page gives, in an input of the page (`for`) or as text (`to`). */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { partsOf, said, startField, typeRight } from './field-page.ts'

const { postern, open } = await startField()

let drawn = 0
const newNumber = () => `1380013${String(7000 + ++drawn)}`
const newMail = () => `ada${++drawn}@shop.example`

const withInput = (type: string) => ({
  attributes: 'for="mine" country="CN"',
  body: `<label>Yours <input id="mine" type="${type}" autocomplete="off"></label>{field}`,
})
const mine = (page: Page) => page.locator('#mine')
const given = (page: Page) => page.locator('.postern-label[id]')
const focused = (page: Page) => page.evaluate('document.activeElement.id')
const change = (page: Page) => page.getByText('Change', { exact: false })

/** The pass, its channel and its address, as the form sends them. */
const carried = (page: Page) =>
  Promise.all(
    ['pass', 'channel', 'to'].map((name) => page.locator(`[name=postern-${name}]`).inputValue()),
  )

async function send(page: Page): Promise<void> {
  await partsOf(page).send.click()
  await expect.poll(() => partsOf(page).code.isVisible()).toBe(true)
}
async function passes(page: Page, to: string): Promise<void> {
  await typeRight(page, await postern.codeFor(to))
  const passed = { type: 'passed', to }
  expect(await page.evaluate('seen.at(-1)')).toMatchObject(passed)
}

describe('the address is corrected after the first send', () => {
  test('a press on "Change number" → the input of the page has the focus, and its number gets the code', async () => {
    const page = await open(withInput('tel'))
    await mine(page).fill(newNumber())
    await send(page)
    await change(page).click()
    expect(await focused(page)).toBe('mine')
    expect(await partsOf(page).address.isVisible()).toBe(false)
    const to = newNumber()
    await page.keyboard.type(to)
    await send(page)
    await passes(page, `+86${to}`)
  })

  test('the number is corrected in the page → the field sends to it; with its first number, it leads back to that code', async () => {
    const page = await open(withInput('tel'))
    const first = newNumber()
    await mine(page).fill(first)
    await send(page)
    const to = newNumber()
    await mine(page).fill(to)
    expect(await partsOf(page).code.isVisible()).toBe(false)
    expect(await partsOf(page).send.textContent()).toBe('Send code')
    await mine(page).fill(first)
    expect(await partsOf(page).send.textContent()).toBe('Enter the code')
    await mine(page).fill(to)
    await send(page)
    await passes(page, `+86${to}`)
  })

  test('a script corrects the number → the field goes back within a second', async () => {
    const page = await open(withInput('tel'))
    await mine(page).fill(newNumber())
    await send(page)
    await page.evaluate(`document.querySelector('#mine').value = '${newNumber()}'`)
    await expect.poll(() => partsOf(page).code.isVisible()).toBe(false)
  })

  test('the number is corrected after "Confirmed" → the form has no pass of the first number, and the field sends again', async () => {
    const page = await open(withInput('tel'))
    await page.clock.install()
    const first = newNumber()
    await mine(page).fill(first)
    await send(page)
    await passes(page, `+86${first}`)
    for (const same of [`+86 ${first}`, '']) {
      await mine(page).fill(same)
      expect(await carried(page)).toEqual([expect.stringMatching(/./), 'sms', `+86${first}`])
    }
    const to = newNumber()
    await mine(page).fill(to)
    expect(await carried(page)).toEqual(['', '', ''])
    // The first pass ends.
    await page.clock.fastForward('06:00')
    await said(page).toBe('')
    await send(page)
    await passes(page, `+86${to}`)
    expect(await carried(page)).toEqual([expect.stringMatching(/./), 'sms', `+86${to}`])
  })

  test.each([
    ['is spelled in another way', (to: string) => `+86 ${to.slice(0, 3)}-${to.slice(3)}`],
    ['is emptied', () => ''],
  ])('the number %s → the code stays, also after a reload', async (_, other) => {
    const page = await open(withInput('tel'))
    const to = newNumber()
    await mine(page).fill(to)
    await send(page)
    await mine(page).fill(other(to))
    expect(await partsOf(page).code.isVisible()).toBe(true)
    await page.reload()
    await mine(page).fill(other(to))
    await passes(page, `+86${to}`)
  })

  test('a request is under way → its code goes to the first number, then the field follows', async () => {
    const page = await open(withInput('tel'))
    const [first, to] = [newNumber(), newNumber()]
    await page.route('**/v1/captchas', async (route) => {
      await mine(page).fill(to)
      await route.continue()
    })
    await mine(page).fill(first)
    await partsOf(page).send.click()
    await postern.codeFor(`+86${first}`)
    await expect.poll(() => partsOf(page).send.textContent()).toBe('Send code')
    await mine(page).fill(first)
    expect(await partsOf(page).send.textContent()).toBe('Enter the code')
  })

  test('the number is corrected during the check → its pass is for the first number only, and the form has none', async () => {
    const page = await open(withInput('tel'))
    const first = newNumber()
    await mine(page).fill(first)
    await send(page)
    await page.route('**/v1/captchas/check', async (route) => {
      await mine(page).fill(newNumber())
      await route.continue()
    })
    await partsOf(page).code.fill(await postern.codeFor(`+86${first}`))
    await expect.poll(() => partsOf(page).send.isVisible()).toBe(true)
    expect(await carried(page)).toEqual(['', '', ''])
    expect(await page.evaluate('seen.at(-1)')).toMatchObject({ type: 'passed', to: `+86${first}` })
  })

  test('`to` is the address of another person, now or after a reload → no code of the first person', async () => {
    const [first, to] = [newMail(), newMail()]
    const page = await open({ attributes: `to="${first}"` })
    await send(page)
    expect(await change(page).isVisible()).toBe(false)
    await page.evaluate(`document.querySelector('postern-code').setAttribute('to', '${to}')`)
    expect(await given(page).textContent()).toContain(to)
    expect(await given(page).isVisible()).toBe(true)
    await send(page)
    await page.reload()
    expect(await given(page).textContent()).toContain(first)
    expect(await partsOf(page).code.isVisible()).toBe(false)
  })
})

describe('an input for a number or a mail address', () => {
  test('the channel follows the input; so does the code', async () => {
    const page = await open(withInput('text'))
    const byText = 'You will get a code by text message.'
    expect(await given(page).textContent()).toBe(byText)
    await partsOf(page).send.click()
    await said(page).toBe('Enter your mobile number first.')
    await page.keyboard.type('ada')
    expect(await given(page).textContent()).toBe(byText)
    await page.keyboard.type('@shop.example')
    expect(await given(page).textContent()).toBe('You will get a code by email.')
    await said(page).toBe('')
    await send(page)
    expect(await partsOf(page).address.isVisible()).toBe(false)
    const to = newNumber()
    await mine(page).fill(to)
    expect(await given(page).textContent()).toBe(byText)
    await send(page)
    await passes(page, `+86${to}`)
  })

  test('a script fills the input, and the button is pressed → the code goes to that address', async () => {
    const page = await open(withInput('text'))
    const to = newMail()
    await page.evaluate(`document.querySelector('#mine').value = '${to}'`)
    await send(page)
    await passes(page, to)
  })
})

test('the other channel is chosen → the field has its own input, also after a reload; and back', async () => {
  const page = await open(withInput('email'))
  await mine(page).fill(newMail())
  await page.getByText('Use SMS instead').click()
  const to = newNumber()
  await partsOf(page).address.fill(to)
  await send(page)
  await mine(page).fill(newMail())
  expect(await partsOf(page).code.isVisible()).toBe(true)
  await page.reload()
  await mine(page).fill(newMail())
  expect(await partsOf(page).code.isVisible()).toBe(true)
  await change(page).click()
  expect(await partsOf(page).address.isVisible()).toBe(true)
  await page.getByText('Use email instead').click()
  expect(await partsOf(page).address.isVisible()).toBe(false)
  expect(await given(page).textContent()).toBe('You will get a code by email.')
})
