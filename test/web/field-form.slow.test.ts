/** The field as an input of its form: its state for the browser, and the form that it submits. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { partsOf, said, startField, wrongFor } from './field-page.ts'

const { open, sendTo: sendToAny } = await startField([])

const to = 'ada@shop.example'
const sendTo = (page: Page) => sendToAny(page, to)
const isValid = (page: Page) =>
  page.evaluate(`(() => {
    const field = document.querySelector('postern-code')
    const { validity, validationMessage } = field
    return {
      valueMissing: validity.valueMissing,
      message: validationMessage,
      form: field.checkValidity() && document.forms[0].checkValidity(),
      selector: document.querySelector('form').matches(':invalid'),
    }
  })()`)
const valid = { valueMissing: false, message: '', form: true, selector: false }

/** The number of times that the form was submitted. */
async function countSubmits(page: Page): Promise<() => number> {
  let submits = 0
  await page.route('**/submitted', (route) => {
    submits++
    return route.fulfill({ contentType: 'text/html', body: '<title>done</title>' })
  })
  return () => submits
}

describe('`required` is known to the browser', () => {
  test.each([
    ['en', 'Confirm this with a code first.'],
    ['zh-CN', '请先完成验证码验证。'],
  ])('%s: the field and its form are invalid until a code passed', async (lang, message) => {
    const page = await open({ lang, attributes: 'channels="email" required' })
    const missing = { valueMissing: true, message, form: false, selector: true }
    await expect.poll(() => isValid(page)).toEqual(missing)
    const code = await sendTo(page)
    expect(await isValid(page)).toEqual(missing)
    await partsOf(page).code.fill(code)
    await expect.poll(() => isValid(page)).toEqual(valid)
    await page.evaluate(`document.querySelector('postern-code').reset()`)
    expect(await isValid(page)).toEqual(missing)
    await page.evaluate(`document.querySelector('postern-code').removeAttribute('required')`)
    expect(await isValid(page)).toEqual(valid)
  })

  test('a text of the page, and a language that changes', async () => {
    const page = await open({ attributes: 'required' })
    const field = `document.querySelector('postern-code')`
    await page.evaluate(`${field}.lang = 'zh'`)
    await expect.poll(() => isValid(page)).toMatchObject({ message: '请先完成验证码验证。' })
    await page.evaluate(`${field}.texts = { required: 'Erst bestätigen.' }`)
    expect(await isValid(page)).toMatchObject({ message: 'Erst bestätigen.' })
  })

  test('a script that asks whether the form is valid changes nothing that a person sees', async () => {
    const page = await open({ attributes: 'required' })
    await partsOf(page).address.focus()
    await isValid(page)
    expect(await partsOf(page).message.textContent()).toBe('')
    expect(await partsOf(page).address.getAttribute('aria-invalid')).toBe('false')
  })

  test('the button pressed: the browser goes to the first input that is missing, and the field names what it misses', async () => {
    const name = '<label>Name <input name="nick" required></label>'
    const page = await open({
      attributes: 'channels="email" required',
      body: `${name}{field}<label>Town <input name="town" required></label><button>Go</button>`,
    })
    const submits = await countSubmits(page)
    const focused = () =>
      page.evaluate('document.activeElement.name || document.activeElement.className')
    await page.getByRole('button', { name: 'Go' }).click()
    expect(await focused()).toBe('nick')
    await said(page).toBe('Confirm this with a code first.')
    await page.locator('[name=nick]').fill('x')
    await page.getByRole('button', { name: 'Go' }).click()
    expect(await focused()).toBe('postern-input')
    await page.locator('[name=town]').fill('x')
    await page.locator('[name=town]').press('Enter')
    expect(await focused()).toBe('postern-input')
    expect(await partsOf(page).address.getAttribute('aria-invalid')).toBe('true')
    await sendTo(page)
    await page.getByRole('button', { name: 'Go' }).click()
    expect(await focused()).toBe('postern-code')
    expect(submits()).toBe(0)
  })

  test.each([
    ['its own address: the button that sends the code', 'to="ada@shop.example"', 'postern-button'],
    ['an input of the page: that input', 'for="mine"', 'mine'],
  ])('%s has the focus', async (_, attribute, focused) => {
    const page = await open({
      attributes: `required ${attribute}`,
      body: '<label>Mail <input id="mine" name="mine" type="email"></label>{field}<button>Go</button>',
    })
    await page.getByRole('button', { name: 'Go' }).click()
    const active = 'document.activeElement.id || document.activeElement.className'
    expect(await page.evaluate(active)).toBe(focused)
    await said(page).toBe('Confirm this with a code first.')
  })

  test('with `novalidate`: the form is still held', async () => {
    const page = await open({ attributes: 'required', body: '{field}<button>Go</button>' })
    const submits = await countSubmits(page)
    await page.evaluate('document.forms[0].noValidate = true')
    await page.getByRole('button', { name: 'Go' }).click()
    await said(page).toBe('Confirm this with a code first.')
    expect(submits()).toBe(0)
  })

  test('a check without an answer: the button of the form repeats it', async () => {
    const page = await open({
      attributes: 'channels="email" required',
      body: '{field}<button>Go</button>',
    })
    const code = await sendTo(page)
    await page.route('**/v1/captchas/check', (route) => route.abort(), { times: 1 })
    await partsOf(page).code.fill(code)
    await said(page).toContain('does not answer')
    await page.getByRole('button', { name: 'Go' }).click()
    await said(page).toBe('Confirmed.')
  })

  test.each([
    ['in a disabled fieldset', '<fieldset disabled>{field}</fieldset><button>Go</button>'],
    ['a button with `formnovalidate`', '{field}<button formnovalidate>Go</button>'],
  ])('%s: the form is sent, as with another input that is missing', async (_, body) => {
    const page = await open({ attributes: 'required', body })
    const submits = await countSubmits(page)
    await page.getByRole('button', { name: 'Go' }).click()
    await page.waitForURL('**/submitted')
    expect(submits()).toBe(1)
  })

  test('a reset that the page refuses keeps the code', async () => {
    const page = await open({ body: '{field}<button type="reset">Clear</button>' })
    await page.getByText('Use email instead').click()
    await sendTo(page)
    const clear = page.getByRole('button', { name: 'Clear' })
    await page.evaluate(`document.forms[0].onreset = () => false`)
    await clear.click()
    expect(await partsOf(page).code.isVisible()).toBe(true)
    await page.evaluate(`document.forms[0].onreset = null`)
    await clear.click()
    await expect.poll(() => partsOf(page).address.isVisible()).toBe(true)
    expect(await partsOf(page).address.inputValue()).toBe('')
  })
})

describe('`autosubmit`', () => {
  const body = '{field}<input name="nick" required><button>Go</button>'

  test('a right code sends the form with its pass; a wrong one does not', async () => {
    const page = await open({ attributes: 'channels="email" autosubmit', body })
    const submits = await countSubmits(page)
    await page.locator('[name=nick]').fill('x')
    const code = await sendTo(page)
    await partsOf(page).code.fill(wrongFor(code))
    await said(page).toContain('wrong')
    expect(submits()).toBe(0)
    const sent = page.waitForRequest('**/submitted')
    await partsOf(page).code.fill(code)
    const form = new URLSearchParams((await sent).postData() ?? '')
    expect(Object.fromEntries(form)).toEqual({
      'postern-pass': expect.stringMatching(/^ey/),
      'postern-channel': 'email',
      'postern-to': to,
      nick: 'x',
    })
    await page.waitForURL('**/submitted')
    expect(submits()).toBe(1)
  })

  test('another input is missing: the browser shows it, and sends nothing', async () => {
    const page = await open({ attributes: 'channels="email" autosubmit', body })
    const submits = await countSubmits(page)
    await partsOf(page).code.fill(await sendTo(page))
    await expect.poll(() => page.evaluate('document.activeElement.name')).toBe('nick')
    expect(submits()).toBe(0)
  })

  test.each([
    ['without it', '', ''],
    ['a page that empties the field on `passed`', 'autosubmit', `onpassed`],
  ])('%s: nothing is sent', async (_, attribute, listens) => {
    const page = await open({
      attributes: `channels="email" ${attribute}`,
      body: '{field}<button>Go</button>',
      head:
        listens && `<script>addEventListener('passed', ({ target }) => target.reset())</script>`,
    })
    const submits = await countSubmits(page)
    await partsOf(page).code.fill(await sendTo(page))
    await expect.poll(() => page.evaluate('seen.at(-1).type')).toBe('passed')
    // After a submit, the page would be gone by now.
    await page.evaluate('new Promise((resolve) => setTimeout(resolve))')
    expect(submits()).toBe(0)
  })
})
