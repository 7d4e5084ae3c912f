/** The look of the field: the places of its parts, also in small windows, its motion, and forced colours. */
import type { BrowserContextOptions, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import {
  answerWith,
  ask,
  axe,
  openField,
  partsOf,
  said,
  startField,
  typeRight,
  wrongFor,
} from './field-page.ts'

const { browser, postern, sendTo: sendToAny } = await startField()

const open = (context: BrowserContextOptions = {}, attributes = '', options = {}) =>
  openField(browser, postern, { attributes, context, ...options })

let drawnNumbers = 0
const sendTo = (page: Page, to = `+86138002${38000 + ++drawnNumbers}`) => sendToAny(page, to)

async function boxOf(page: Page, selector: string) {
  const box = await page.locator(selector).boundingBox()
  if (!box) throw new Error(`${selector} is not drawn`)
  return { ...box, bottom: box.y + box.height }
}

/** A computed style of the first element that matches. */
const drawn = (page: Page, selector: string, property: string, pseudo = '') =>
  page.evaluate(
    `getComputedStyle(document.querySelector('${selector}'), '${pseudo}')['${property}']`,
  ) as Promise<string>

describe('where the parts stand', () => {
  test('the country before the number has the arrow of a list only if there is a choice', async () => {
    const arrowOf = async (attributes: string) =>
      drawn(await open({}, attributes), '.postern-country', 'content', '::after')
    expect(await arrowOf('country="CN"')).toBe('none')
    expect(await arrowOf('countries="CN,GB"')).toBe('""')
  })

  test.each([320, 360, 768, 1440])(
    '%i px: the message is directly under the digits, and the link for another code under that',
    async (width) => {
      const page = await open({ viewport: { width, height: 900 } })
      await sendTo(page)
      const [digits, message, again] = [
        await boxOf(page, '.postern-digits'),
        await boxOf(page, '.postern-message'),
        await boxOf(page, '.postern-again'),
      ]
      expect(message.y - digits.bottom).toBe(8)
      expect(again.y).toBeGreaterThanOrEqual(message.bottom)
      expect(await partsOf(page).again.getAttribute('class')).toContain('postern-link')
      expect(await drawn(page, '.postern-again', 'borderStyle')).toBe('none')
      expect(await drawn(page, '.postern-again', 'backgroundColor')).toBe('rgba(0, 0, 0, 0)')
      await page.clock.install()
      await page.reload()
      await page.clock.fastForward('01:01')
      await expect.poll(() => drawn(page, '.postern-again', 'textDecorationLine')).toBe('underline')
    },
  )

  test.each([
    ['320 px, mail first', 320, 'channels="email,sms"'],
    ['360 px, its own address', 360, 'to="+8613800138000" channels="sms"'],
    ['360 px, a country', 360, 'countries="CN,HK"'],
    ['464 px, mail first', 464, 'channels="email,sms"'],
  ])('%s: nothing moves from the address to the code', async (_, width, attributes) => {
    const page = await open({ viewport: { width, height: 700 } }, attributes)
    await page.locator('.postern-field').waitFor()
    const before = (await boxOf(page, 'postern-code')).height
    const { address, send, code } = partsOf(page)
    const to = attributes.includes('email') ? `a${width}@shop.example` : '+8613800138111'
    if (!attributes.includes('to=')) await address.fill(to)
    await send.click()
    await expect.poll(() => code.isVisible()).toBe(true)
    expect((await boxOf(page, 'postern-code')).height).toBe(before)
    expect(await page.evaluate('document.documentElement.scrollWidth > innerWidth')).toBe(false)
  })
})

describe('an error is in sight', () => {
  const far = { body: '<p style="height: 120vh">Terms</p>{field}<p style="height: 120vh">More</p>' }

  /** True if the message is within the visible part of the window. */
  const isInSight = (page: Page) =>
    page.evaluate(`(() => {
      const { top, bottom } = document.querySelector('.postern-message').getBoundingClientRect()
      const { offsetTop, height } = visualViewport
      return top >= offsetTop && bottom <= offsetTop + height + 0.5
    })()`)

  test.each([
    ['400 % zoom of a window of 1280 × 1024', { width: 320, height: 256 }],
    ['a phone whose keyboard makes the window smaller', { width: 360, height: 300 }],
  ])('%s: a wrong number, a wrong code, a form that is sent too early', async (_, viewport) => {
    const page = await open({ viewport }, 'required', { body: `${far.body}<button>Go</button>` })
    await partsOf(page).send.click()
    await said(page).toContain('first')
    expect(await isInSight(page)).toBe(true)
    await page.getByRole('button', { name: 'Go' }).click()
    await said(page).toContain('Confirm this')
    expect(await isInSight(page)).toBe(true)
    const code = await sendTo(page)
    await partsOf(page).code.fill(wrongFor(code))
    await said(page).toContain('wrong')
    expect(await isInSight(page)).toBe(true)
    expect(await page.evaluate('document.documentElement.scrollWidth > innerWidth')).toBe(false)
    expect(await axe(page)).toEqual([])
  })

  test('a keyboard that covers the page, also when it opens after the error', async () => {
    const page = await open({ viewport: { width: 360, height: 740 } }, '', {
      ...far,
      head: `<script>
        const keyboard = Object.assign(new EventTarget(), { offsetTop: 0, height: 740, scale: 1 })
        Object.defineProperty(window, 'visualViewport', { value: keyboard })
        window.openKeyboard = (height) => {
          keyboard.height = height
          keyboard.dispatchEvent(new Event('resize'))
        }
      </script>`,
    })
    const atBottom = () =>
      page.evaluate(`document.querySelector('postern-code').scrollIntoView({ block: 'end' })`)
    await partsOf(page).address.focus()
    await atBottom()
    await page.evaluate('openKeyboard(300)')
    await page.keyboard.press('Enter')
    await said(page).toContain('first')
    expect(await isInSight(page)).toBe(true)
    await page.evaluate('openKeyboard(740)')
    await atBottom()
    expect(await isInSight(page)).toBe(true)
    await page.evaluate('openKeyboard(300)')
    expect(await isInSight(page)).toBe(true)
    // The page does not scroll a visitor back who reads elsewhere.
    await page.evaluate('document.activeElement.blur(), scrollTo(0, 0), openKeyboard(299)')
    expect(await page.evaluate('scrollY')).toBe(0)
  })
})

describe('what moves', () => {
  const turns = (page: Page) =>
    page.evaluate(`[...document.querySelectorAll('.postern-digit')].map((digit) =>
      [getComputedStyle(digit).animationName, getComputedStyle(digit).animationDelay])`)
  const tick = async (page: Page) => ({
    content: await drawn(page, '.postern-digits', 'content', '::after'),
    visibility: await drawn(page, '.postern-digits', 'visibility', '::after'),
    delay: await drawn(page, '.postern-digits', 'animationDelay', '::after'),
  })

  test('digits that arrive together appear one after another; a typed digit at once', async () => {
    const page = await open()
    await sendTo(page)
    await page.keyboard.type('1')
    expect(((await turns(page)) as string[][])[0]).toEqual(['postern-fill', '0s'])
    await page.keyboard.type('2')
    expect(((await turns(page)) as string[][])[1]).toEqual(['postern-fill', '0s'])
    await page.keyboard.press('Backspace')
    await page.keyboard.press('Backspace')
    // Like a browser that fills in a part of a code.
    await partsOf(page).code.fill('123')
    expect(await turns(page)).toEqual([
      ['postern-fill', '0s'],
      ['postern-fill', '0.05s'],
      ['postern-fill', '0.1s'],
      ['none', '0s'],
    ])
  })

  test('a right code: the digits turn right one after another, and a tick follows', async () => {
    const page = await open()
    const code = await sendTo(page)
    expect((await tick(page)).visibility).toBe('hidden')
    await typeRight(page, code)
    expect(await turns(page)).toEqual(
      [0, 0.09, 0.18, 0.27].map((delay) => ['postern-right', `${delay}s`]),
    )
    expect(await tick(page)).toEqual({
      content: expect.stringContaining('✓'),
      visibility: 'visible',
      delay: '0.36s',
    })
    const right = await drawn(page, '.postern-message', 'color')
    await expect.poll(() => drawn(page, '.postern-digit', 'borderTopColor')).toBe(right)
  })

  test('prefers-reduced-motion: the same state, and nothing moves', async () => {
    const page = await open({ reducedMotion: 'reduce' })
    const code = await sendTo(page)
    const moving = () => page.evaluate('document.getAnimations().length')
    expect(await moving()).toBe(0)
    await partsOf(page).code.fill(wrongFor(code))
    await said(page).toContain('wrong')
    expect(await moving()).toBe(0)
    await typeRight(page, code)
    expect(await moving()).toBe(0)
    expect((await tick(page)).visibility).toBe('visible')
    const right = await drawn(page, '.postern-message', 'color')
    expect(await drawn(page, '.postern-digit', 'borderTopColor')).toBe(right)
  })
})

describe('forced colours', () => {
  test.each(['light', 'dark'] as const)(
    '%s: what waits, what is wrong, what has the focus',
    async (colorScheme) => {
      const page = await open({ forcedColors: 'active', colorScheme, reducedMotion: 'reduce' })
      const system = (name: string) =>
        page.evaluate(`(() => {
        const probe = document.body.appendChild(document.createElement('i'))
        probe.style.color = '${name}'
        const { color } = getComputedStyle(probe)
        probe.remove()
        return color
      })()`)
      const border = (selector: string) => drawn(page, selector, 'borderTopColor')
      await page.locator('.postern-field').waitFor()
      expect(await drawn(page, '.postern-button', 'borderTopStyle')).toBe('solid')
      expect(await border('.postern-button')).not.toBe(await system('Canvas'))
      expect(await axe(page)).toEqual([])
      await partsOf(page).send.click()
      await said(page).toContain('first')
      expect(await drawn(page, '.postern-input', 'borderTopStyle')).toBe('dashed')
      expect(await drawn(page, '.postern-input', 'outlineStyle')).toBe('solid')
      const code = await sendTo(page)
      const [gray, text, highlight] = [
        await system('GrayText'),
        await system('CanvasText'),
        await system('Highlight'),
      ]
      expect(await drawn(page, '.postern-again', 'color')).toBe(gray)
      expect(await drawn(page, '.postern-link:not(.postern-again)', 'color')).toBe(
        await system('LinkText'),
      )
      expect(await drawn(page, '.postern-digit', 'borderTopStyle')).toBe('solid')
      expect(await border('.postern-active')).toBe(highlight)
      expect(await drawn(page, '.postern-active', 'outlineStyle')).toBe('solid')
      await partsOf(page).code.fill(wrongFor(code))
      await said(page).toContain('wrong')
      const wrong = '.postern-digit:not(.postern-active)'
      expect(await drawn(page, wrong, 'borderTopStyle')).toBe('dashed')
      expect(await border(wrong)).toBe(text)
      // The input above the digits is invisible.
      expect(await drawn(page, '.postern-code', 'borderTopWidth')).toBe('0px')
      await typeRight(page, code)
      expect(await border('.postern-digit')).toBe(highlight)

      await page.evaluate(`document.querySelector('postern-code').reset()`)
      const limited = { code: 'limited', policy: 'captcha', rule: 'a', retryAfterMs: 60_000 }
      await page.route('**/v1/captchas', answerWith(429, limited))
      await ask(page, '+8613800138000')
      await said(page).toContain('Too many')
      expect(await drawn(page, '.postern-button', 'color')).toBe(gray)
      expect(await border('.postern-button')).toBe(gray)
      expect(await axe(page)).toEqual([])
    },
  )
})

describe('directions', () => {
  test('what a person types has its own direction; on a page from right to left, numbers stay left to right', async () => {
    const page = await open({}, 'countries="SA,CN" dir="rtl"', { lang: 'ar' })
    const { address } = partsOf(page)
    const direction = (selector: string) => drawn(page, selector, 'direction')
    expect(await address.getAttribute('dir')).toBe('auto')
    expect(await direction('.postern-input')).toBe('ltr')
    await page.getByText('Use email instead').click()
    await address.fill('مها@shop.example')
    expect(await direction('.postern-input')).toBe('rtl')
    await address.fill('maha@shop.example')
    expect(await direction('.postern-input')).toBe('ltr')
    await page.getByText('Use SMS instead').click()
    await sendTo(page, '501234567')
    expect(await direction('.postern-digits')).toBe('ltr')
    // The number begins at its left, in a sentence that runs from right to left.
    const places = (await page.evaluate(`(() => {
      const { firstChild } = document.querySelectorAll('.postern-label')[2]
      const left = (character) => {
        const range = document.createRange()
        const at = firstChild.data.indexOf(character)
        range.setStart(firstChild, at)
        range.setEnd(firstChild, at + 1)
        return range.getBoundingClientRect().left
      }
      return [left('+'), left('9')]
    })()`)) as number[]
    expect(places[0]).toBeLessThan(places[1] ?? 0)
  })
})
