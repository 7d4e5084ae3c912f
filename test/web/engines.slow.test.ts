/** The field in the other browser engines. Its detailed tests run in Chromium. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { servePage } from '../tools/browser.ts'
import { engines, keys, type OtherBrowser } from '../tools/other-browsers.ts'
import { noLimits, type Postern, startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { type FieldOptions, htmlOf, wrongFor } from './field-page.ts'

let postern: Postern
beforeAll(async () => {
  postern = await startPostern({ policyFile: { policies: noLimits } })
})

/** The folder for pictures of these tests. */
const pictures = process.env.ENGINE_PICTURES

const styleOf = (selector: string, property: string, pseudo = '') =>
  `getComputedStyle(document.querySelector('${selector}'), '${pseudo}').${property}`
const count = (selector: string) => `document.querySelectorAll('${selector}').length`
const message = `document.querySelector('.postern-message').textContent`

test.each(Object.keys(engines) as (keyof typeof engines)[])(
  '%s: the number is grouped around the caret; a wrong code, a right one, and the form that follows',
  async (name) => {
    const browser = await engines[name]()
    const options: FieldOptions = {
      attributes: 'country="CN" countries="CN,HK,GB" channels="sms" required autosubmit',
      head: `<script>addEventListener('submit', (event) => {
      event.preventDefault()
      window.sent = Object.fromEntries(new FormData(event.target))
    })</script>`,
      body: '{field}<button id="go">Go</button>',
    }
    let html = ''
    const { port } = await servePage(() => html)
    const origin = `http://localhost:${port}`
    html = htmlOf(postern, await publishableKey(postern.database, { origins: [origin] }), options)
    await browser.open(origin)
    const is = <Value>(expression: string) => expect.poll(() => browser.evaluate<Value>(expression))
    const picture = async (step: string) => {
      if (!pictures) return
      mkdirSync(pictures, { recursive: true })
      writeFileSync(`${pictures}/${name}-${step}.png`, await browser.screenshot())
    }

    await is(count('.postern-field')).toBe(1)
    expect(await browser.evaluate(`document.forms[0].matches(':invalid')`)).toBe(true)
    await browser.evaluate(`document.querySelector('#go').click()`)
    await is(message).toBe('Confirm this with a code first.')
    await is('document.activeElement.className').toBe('postern-input')
    await picture('required')

    await typesNumber(browser)
    await picture('number')
    await browser.type(keys.enter)
    await is('document.activeElement.className').toBe('postern-code')
    const { id } = await browser.evaluate<{ id: string }>('seen.at(-1)')
    const code = await postern.codeFor(id)
    const below = `document.querySelector('.postern-message').getBoundingClientRect().top -
    document.querySelector('.postern-digits').getBoundingClientRect().bottom`
    expect(await browser.evaluate(below)).toBeCloseTo(8, 1)
    await browser.type(wrongFor(code).slice(0, 2))
    await picture('digits')
    await browser.type(wrongFor(code).slice(2))
    await is(message).toContain('This code is wrong.')
    expect(await browser.evaluate(count('.postern-code[aria-invalid=true]'))).toBe(1)
    await picture('wrong')

    await browser.type(code)
    await is(message).toBe('Confirmed.')
    expect(await browser.evaluate(styleOf('.postern-digits', 'visibility', '::after'))).toBe(
      'visible',
    )
    const right = await browser.evaluate(styleOf('.postern-message', 'color'))
    await is(styleOf('.postern-digit', 'borderTopColor')).toBe(right)
    await picture('passed')
    expect(await browser.evaluate(`document.forms[0].matches(':invalid')`)).toBe(false)
    expect(await browser.evaluate('sent')).toMatchObject({ 'postern-to': '+8613800138000' })
  },
)

/** Types 13800138000 with a mistake in the middle, and corrects it. */
async function typesNumber(browser: OtherBrowser): Promise<void> {
  const input = `document.querySelector('.postern-input')`
  const now = () => browser.evaluate(`[${input}.value, ${input}.selectionStart]`)
  await browser.type('+852')
  expect(await browser.evaluate(`document.querySelector('select').value`)).toBe('HK')
  await browser.type(keys.backspace.repeat(4))
  expect(await browser.evaluate(`document.querySelector('.postern-prefix').textContent`)).toBe(
    '+86',
  )
  await browser.type('1380138000')
  expect(await now()).toEqual(['138 0138 000', 12])
  await browser.type(keys.left.repeat(7))
  await browser.type('0')
  expect(await now()).toEqual(['138 0013 8000', 6])
}
