/** The code field in a browser, before a service that answers by a function of the test. The slow files have a real service. */
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { languages } from '../../src/i18n/languages.ts'
import { launchBrowser } from '../tools/browser.ts'
import {
  createMockedPages,
  field,
  newCode,
  pass,
  passed,
  refused,
  type TextService,
  textsAtOnce,
} from './field-mocked.ts'
import { ask, partsOf, said, typeRight } from './field-page.ts'

const open = await createMockedPages(await launchBrowser())

const number = '+8613800138000'

/** An answer that arrives when the test calls `arrive`. */
function later<T>() {
  const { promise, resolve } = Promise.withResolvers<T>()
  return { promise, arrive: resolve }
}

async function send(page: Page, to = number): Promise<void> {
  await ask(page, to)
  await expect.poll(() => partsOf(page).code.isVisible()).toBe(true)
}
const passOf = (page: Page) => page.evaluate(`document.querySelector('postern-code').pass`)
const run = (page: Page, script: string) =>
  page.evaluate(`{ const field = document.querySelector('postern-code'); ${script} }`)

test('a right code was typed in this browser → later sends and checks for that address have its token, and for another one none', async () => {
  const known = { ...passed, body: { ...passed.body, known: 'to.k.en' } }
  const { page, asked } = await open(field(), ({ path }) =>
    path.endsWith('/check') ? known : newCode(),
  )
  for (const to of [number, number, '+8613800138001']) {
    await send(page, to)
    await partsOf(page).code.pressSequentially('1234')
    await said(page).toContain('Confirmed')
    await page.reload()
  }
  const [none, token] = [undefined, 'to.k.en']
  expect(asked.map(({ body }) => body.known)).toEqual([none, none, token, token, none, none])
})

describe('where the focus is', () => {
  test('the person types into another input when the code is sent → the focus stays there', async () => {
    const answer = later<ReturnType<typeof newCode>>()
    const { page, asked } = await open(`${field()}<input id="secret">`, ({ path }) =>
      path.endsWith('/check') ? passed : answer.promise,
    )
    await ask(page, number)
    await page.locator('#secret').pressSequentially('pass')
    answer.arrive(newCode())
    await said(page).toContain('is on its way')
    await page.keyboard.type('1234')
    expect(await page.locator('#secret').inputValue()).toBe('pass1234')
    expect(asked).toHaveLength(1)
  })

  test('the address is refused meanwhile → the focus stays there too', async () => {
    const answer = later<ReturnType<typeof newCode>>()
    const { page } = await open(`${field()}<input id="other">`, () => answer.promise)
    await ask(page, '+86138')
    await page.locator('#other').focus()
    answer.arrive(refused(422, 'invalid_recipient'))
    await said(page).toContain('not a mobile number')
    expect(await page.evaluate('document.activeElement.id')).toBe('other')
  })

  test('the person waits at the field, or nowhere → the code input has the focus', async () => {
    const answer = later<ReturnType<typeof newCode>>()
    let isFirst = true
    const { page } = await open(field(), () => {
      if (!isFirst) return answer.promise
      isFirst = false
      return newCode()
    })
    await send(page)
    const isInCode = () => page.evaluate(`document.activeElement.matches('.postern-code')`)
    await expect.poll(isInCode).toBe(true)
    await partsOf(page).again.click()
    await page.evaluate('document.activeElement.blur()')
    expect(await isInCode()).toBe(false)
    answer.arrive(newCode())
    await expect.poll(isInCode).toBe(true)
  })
})

describe('an answer is lost', () => {
  test('of a resend → a check names no id, also after a reload; of the repeat that arrives, it does again', async () => {
    let isLost = false
    const { page, asked } = await open(field(), ({ path }) => {
      if (path.endsWith('/check')) return refused(422, 'code_mismatch', { triesLeft: 2 })
      return isLost ? 'lost' : newCode()
    })
    const idOfCheck = async () => {
      const before = asked.length
      await partsOf(page).code.fill('1234')
      await said(page).toContain('wrong')
      expect(asked).toHaveLength(before + 1)
      return asked.at(-1)?.body.id
    }
    await send(page)
    expect(await idOfCheck()).toMatch(/^0/)
    isLost = true
    await partsOf(page).again.click()
    await said(page).toContain('does not answer')
    expect(await idOfCheck()).toBeUndefined()
    await page.reload()
    expect(await idOfCheck()).toBeUndefined()
    isLost = false
    await partsOf(page).again.click()
    await said(page).toContain('A new code')
    expect(await idOfCheck()).toMatch(/^0/)
  })

  test('a resend is refused by a limit → the check names the id of the code that was sent', async () => {
    let isFirst = true
    const { page, asked } = await open(field(), ({ path }) => {
      if (path.endsWith('/check')) return passed
      const answer = isFirst ? newCode() : refused(429, 'limited', { retryAfterMs: 60_000 })
      isFirst = false
      return answer
    })
    await send(page)
    await partsOf(page).again.click()
    await said(page).toContain('Too many codes')
    await typeRight(page, '1234')
    expect(asked.at(-1)?.body.id).toMatch(/^0/)
  })

  test('of a check → the repeat is the same request, and its pass counts', async () => {
    let isLost = true
    const { page, asked } = await open(field(), ({ path }) =>
      !path.endsWith('/check') ? newCode() : isLost ? 'lost' : passed,
    )
    await send(page)
    await partsOf(page).code.fill('1234')
    await said(page).toContain('does not answer')
    isLost = false
    await partsOf(page).code.press('Enter')
    await said(page).toBe('Confirmed.')
    expect(asked[2]).toEqual(asked[1])
    expect(await passOf(page)).toBe(pass)
  })

  test.each([
    ['the same request', '', true],
    ['another number', `field.querySelector('.postern-input').value = '+8613900139000'`, false],
    ['another language', `field.lang = 'zh'`, false],
    ['another purpose', `field.setAttribute('scene', 'login')`, false],
  ])('of a send, then %s: %j → the same Idempotency-Key: %s', async (_, change, isSame) => {
    const { page, asked } = await open(field(), () => 'lost')
    await ask(page, number)
    await said(page).toContain('does not answer')
    await run(page, change)
    await partsOf(page).send.click()
    await expect.poll(() => asked.length).toBe(2)
    expect(asked[0]?.key).toMatch(/./)
    expect(asked[1]?.key === asked[0]?.key).toBe(isSame)
  })
})

describe('the page changes the element', () => {
  const changes = [
    ['its country', `field.setAttribute('country', 'GB')`],
    ['its countries', `field.setAttribute('countries', 'GB,FR')`],
    ['its language', `field.lang = 'zh'`],
    ['what it must have', 'field.required = true; field.setAttribute("required", "")'],
    ['its place', `document.body.append(field)`],
    ['its form', `document.forms[1].append(field)`],
    [
      'another input of the page',
      `document.querySelector('#nick').dispatchEvent(new Event('input', { bubbles: true }))`,
    ],
  ] as const
  const body = `<form><input id="mine" type="tel" value="138 0013 8000">${field('for="mine" country="CN"')}</form><form><input id="nick"></form>`

  test('after a code passed: everything that changes only its look or place → the pass stays', async () => {
    const { page } = await open(body, ({ path }) => (path.endsWith('/check') ? passed : newCode()))
    await partsOf(page).send.click()
    await typeRight(page, '1234')
    for (const [what, change] of changes) {
      await run(page, change)
      expect(await passOf(page), what).toBe(pass)
    }
    expect(await page.locator('.postern-field').count()).toBe(1)
  })

  test.each([
    [
      'everything that changes only its look or place',
      changes.map(([, change]) => change).join(';'),
    ],
    ['a reset of the form', 'field.closest("form").reset()'],
  ])('during a check: %s → its pass is taken', async (_, change) => {
    const answer = later<typeof passed>()
    const { page } = await open(body, ({ path }) =>
      path.endsWith('/check') ? answer.promise : newCode(),
    )
    await partsOf(page).send.click()
    await partsOf(page).code.fill('1234')
    await said(page).toBe('Checking…')
    await run(page, change)
    answer.arrive(passed)
    await expect.poll(() => passOf(page)).toBe(pass)
  })

  test('a move into another form → that form has the pass and waits for it', async () => {
    const forms = `<form id="a">${field('required')}</form><form id="b" novalidate><button>Go</button></form>`
    const { page } = await open(forms, () => newCode())
    await run(page, `document.querySelector('#b').append(field)`)
    await page.getByRole('button', { name: 'Go' }).click()
    await said(page).toContain('Confirm this with a code first.')
  })

  test('taken out for good → nothing runs on', async () => {
    const { page } = await open(field(), () => newCode())
    await run(page, `field.remove(); window.field = field`)
    await page.evaluate(`document.documentElement.lang = 'zh'`)
    expect(await page.evaluate(`window.field.querySelector('.postern-button').textContent`)).toBe(
      'Send code',
    )
  })

  test('the language of the page or of a part of it changes → so does the field', async () => {
    const { page } = await open(`<main>${field()}</main>`, () => newCode())
    await page.evaluate(`document.documentElement.lang = 'zh-CN'`)
    await expect.poll(() => partsOf(page).send.textContent()).toBe('获取验证码')
    await page.evaluate(`document.querySelector('main').lang = 'en'`)
    await expect.poll(() => partsOf(page).send.textContent()).toBe('Send code')
  })

  test('other channels: at the first step the field follows them; a sent code stays', async () => {
    const { page } = await open(field(), () => newCode())
    await run(page, `field.setAttribute('channels', 'email,sms')`)
    expect(await partsOf(page).address.getAttribute('type')).toBe('email')
    await run(page, `field.setAttribute('channels', 'sms')`)
    await send(page)
    await run(page, `field.setAttribute('channels', 'sms,email')`)
    expect(await partsOf(page).code.isVisible()).toBe(true)
  })
})

describe('the texts of a language, which the field brings from its service', () => {
  /** Collects each text that the button shows, frame by frame. */
  const watched = `<script>{
    window.shown = new Set()
    const look = () => {
      const button = document.querySelector('.postern-button')
      if (button?.checkVisibility({ visibilityProperty: true })) shown.add(button.textContent)
      requestAnimationFrame(look)
    }
    look()
  }</script>`
  const shown = (page: Page) => page.evaluate('[...shown]')

  test('German for every German language: brought once for two fields, and no other language is shown before', async () => {
    const arrival = later<void>()
    let brought = 0
    const { page, asked } = await open(
      `${watched}${field('required', 'a')}${field('', 'b')}`,
      () => newCode(),
      {
        lang: 'de-AT',
        async texts(route, language) {
          brought++
          await arrival.promise
          await textsAtOnce(route, language)
        },
      },
    )
    await page.evaluate(
      'new Promise(requestAnimationFrame).then(() => new Promise(requestAnimationFrame))',
    )
    expect(await shown(page)).toEqual([])
    arrival.arrive()
    const first = page.locator('postern-code').first()
    await first.getByRole('textbox', { name: 'Mobilnummer' }).fill(number)
    await first.getByRole('button', { name: 'Code senden' }).click()
    await first.getByText('Ein Code mit 4 Ziffern ist unterwegs.').waitFor()
    expect(asked[0]?.body.locale).toBe('de-AT')
    expect(await page.evaluate(`document.querySelector('postern-code').validationMessage`)).toBe(
      languages.de.field.required,
    )
    expect(await shown(page)).toEqual(['Code senden'])
    expect(brought).toBe(1)
  })

  test('the language changes → the old texts stay until the new ones arrive, and the focus too', async () => {
    const arrival = later<void>()
    const { page } = await open(`${watched}${field()}`, () => newCode(), {
      async texts(route, language) {
        await arrival.promise
        await textsAtOnce(route, language)
      },
    })
    await partsOf(page).address.focus()
    await run(page, `field.lang = 'zh'`)
    expect(await partsOf(page).send.textContent()).toBe('Send code')
    arrival.arrive()
    await expect.poll(() => partsOf(page).send.textContent()).toBe('获取验证码')
    expect(await page.evaluate(`document.activeElement.className`)).toBe('postern-input')
    // The page notes what is shown a moment later.
    await expect.poll(() => shown(page)).toEqual(['Send code', '获取验证码'])
    await run(page, `field.lang = 'de'; field.lang = 'en'`)
    await expect.poll(() => partsOf(page).send.textContent()).toBe('Send code')
  })

  test.each<[string, TextService]>([
    [
      'an older service has no such file',
      (route) => route.fulfill({ status: 404, json: { send: 'x' } }),
    ],
    ['the page of a proxy', (route) => route.fulfill({ contentType: 'text/html', body: '<p>' })],
    ['no object', (route) => route.fulfill({ json: null })],
    ['texts that are no texts', (route) => route.fulfill({ json: { send: 1, smsLabel: {} } })],
    ['the connection is lost', (route) => route.abort()],
    ['there is never an answer', () => new Promise(() => {})],
  ])('%s → English', async (_, texts) => {
    const { page } = await open(field(), () => newCode(), { lang: 'zh', texts })
    await page.getByRole('textbox', { name: 'Mobile number' }).fill(number)
    await page.getByRole('button', { name: 'Send code' }).click()
    await said(page).toContain('is on its way')
  })

  test('texts are shown as they are, and texts of the page replace them', async () => {
    const { page } = await open(field('text-sms-label="手机"'), () => newCode(), {
      lang: 'zh',
      texts: (route) => route.fulfill({ json: { send: '<img src=x onerror=alert(1)>' } }),
    })
    await expect.poll(() => partsOf(page).send.textContent()).toBe('<img src=x onerror=alert(1)>')
    expect(await page.locator('.postern-label').first().textContent()).toBe('手机')
    expect(await page.locator('img').count()).toBe(0)
  })
})

describe('the link of a message', () => {
  /** Sends a code, and returns the address that its link opens. */
  async function openAndSend(body = field(), answer: ReturnType<typeof newCode> = passed) {
    const code = newCode()
    const { id } = (code as { body: { id: string } }).body
    const opened = await open(body, ({ path }) => (path.endsWith('/check') ? answer : code))
    await send(opened.page)
    const link = `http://localhost/page#postern-code=1234&id=${id}`
    return { ...opened, id, link }
  }
  const confirm = (page: Page) => page.getByRole('button', { name: 'Confirm', exact: true })
  const boxOf = (page: Page, part: string) => page.locator(part).last().boundingBox()
  const anotherId = '01900000-0000-7000-8000-000000000001'

  /** The code is filled in and nothing was sent; one press confirms it. */
  async function expectFilled(page: Page, asked: unknown[]): Promise<void> {
    await confirm(page).waitFor()
    expect(await partsOf(page).code.inputValue()).toBe('1234')
    expect(await page.evaluate('location.href')).toBe('http://localhost/page')
    expect(asked).toHaveLength(1)
    expect(await passOf(page)).toBe('')
    for (const width of [900, 320]) {
      await page.setViewportSize({ width, height: 700 })
      const [digit, button, message] = await Promise.all(
        ['.postern-digit', '.postern-button', '.postern-message'].map((part) => boxOf(page, part)),
      )
      if (!digit || !button || !message) expect.unreachable()
      const isBeside = digit.x + digit.width <= button.x
      const isAbove = digit.y + digit.height <= button.y
      expect({ width, isBeside, isAbove }).toEqual({
        width,
        isBeside: width === 900,
        isAbove: width === 320,
      })
      expect(button.y + button.height).toBeLessThanOrEqual(message.y)
    }
    await confirm(page).click()
    await said(page).toBe('Confirmed.')
  }

  test.each([
    ['the tab that asked', '', ''],
    ['a field that sends its form', 'autosubmit required', ''],
    ['an address that the page gives', `to="${number}"`, 'given'],
  ])('opened in %s → the code is filled in and waits for a press', async (_, attributes, given) => {
    const code = newCode()
    const { id } = (code as { body: { id: string } }).body
    const { page, asked } = await open(
      `<form action="/page">${field(attributes)}</form>`,
      ({ path }) => (path.endsWith('/check') ? passed : code),
    )
    if (given) await partsOf(page).send.click()
    else await send(page)
    await expect.poll(() => partsOf(page).code.isVisible()).toBe(true)
    await run(
      page,
      `field.closest('form').addEventListener('submit', (event) => event.preventDefault())`,
    )
    await page.evaluate(`location.hash = 'postern-code=1234&id=${id}'`)
    await expectFilled(page, asked)
    expect(asked[1]).toMatchObject({ path: '/v1/captchas/check', body: { id, code: '1234' } })
  })

  test('opened in the tab that asked, as a new page, and a digit is changed → the code is read as one that was typed', async () => {
    const { page, asked, link } = await openAndSend()
    await page.goto('about:blank')
    await page.goto(link)
    await confirm(page).waitFor()
    await partsOf(page).code.press('Backspace')
    await expect.poll(() => confirm(page).count()).toBe(0)
    await partsOf(page).code.press('5')
    await said(page).toBe('Confirmed.')
    expect(asked[1]?.body).toMatchObject({ code: '1235', to: number })
  })

  test('opened in another tab → the tab that asked gives the address, which is stored nowhere else', async () => {
    const { page, asked, link, id } = await openAndSend()
    const tab = await page.context().newPage()
    await tab.goto(link)
    const stored = await tab.evaluate('JSON.stringify(localStorage)')
    expect(stored).toContain(id)
    expect(stored).not.toContain('138001')
    await expectFilled(tab, asked)
    expect(asked[1]?.body).toMatchObject({ id, code: '1234', to: number })
    await tab.close()
  })

  test('the tab that asked was closed, or the browser never asked → it shows the code, and sends nothing', async () => {
    const { page, asked, link, id } = await openAndSend()
    await page.evaluate('sessionStorage.clear()')
    await page.goto('about:blank')
    const sentence = 'Type this code where you asked for it: 1234'
    await page.goto(link)
    await said(page).toBe(sentence)
    await page.evaluate('localStorage.clear(); sessionStorage.clear()')
    await page.goto('about:blank')
    await page.goto(link.replace(id, anotherId))
    await said(page).toBe(sentence)
    expect(await page.evaluate('location.href')).toBe('http://localhost/page')
    expect(await partsOf(page).code.isVisible()).toBe(false)
    expect(asked).toHaveLength(1)
    await partsOf(page).address.fill(number)
    await said(page).toBe('')
  })

  test('a later code has replaced the one of the link → it is no longer valid, and the later one can be typed', async () => {
    const { page, asked } = await open(field(), ({ path }) =>
      path.endsWith('/check') ? passed : newCode(),
    )
    await send(page)
    const first = Object.keys(
      (await page.evaluate(`JSON.parse(localStorage.getItem('postern asked'))`)) as object,
    )
    await partsOf(page).again.click()
    await said(page).toContain('A new code')
    await page.evaluate(`location.hash = 'postern-code=1234&id=${first[0]}'`)
    await said(page).toContain('This code is no longer valid.')
    await typeRight(page, '5678')
    expect(asked.at(-1)?.body).toMatchObject({ code: '5678' })
  })

  test('two fields → the one that asked takes the code', async () => {
    const body = `<div id="a">${field('', 'signup')}</div><div id="b">${field('', 'login')}</div>`
    const code = newCode()
    const { id } = (code as { body: { id: string } }).body
    const { page } = await open(body, () => code)
    await page.locator('#b .postern-input').fill(number)
    await page.locator('#b .postern-button').click()
    await page.locator('#b input.postern-code').waitFor()
    await page.goto('about:blank')
    await page.goto(`http://localhost/page#postern-code=1234&id=${id}`)
    await expect.poll(() => page.locator('#b input.postern-code').inputValue()).toBe('1234')
    expect(await page.locator('#a .postern-message').textContent()).toBe('')
  })

  test('the wrong code of a link → it is gone from the field, and the next one is typed', async () => {
    const { page, asked, link } = await openAndSend(
      field(),
      refused(422, 'code_mismatch', { triesLeft: 2 }),
    )
    await page.goto('about:blank')
    await page.goto(link)
    await confirm(page).click()
    await said(page).toContain('This code is wrong')
    expect(await confirm(page).count()).toBe(0)
    await partsOf(page).code.fill('1234')
    await expect.poll(() => asked.length).toBe(3)
  })

  test('other fragments of the page stay', async () => {
    const { page } = await open(field(), () => newCode())
    for (const other of ['#top', '#postern-code=12', '#/route?postern-code=1234&id=x']) {
      await page.evaluate(`location.hash = '${other}'`)
      expect(await page.evaluate('location.hash')).toBe(other)
    }
  })
})

test('two fields of one key with other scenes → neither shows the code or the wait of the other, also after a reload', async () => {
  const body = `<div id="a">${field('', 'signup')}</div><div id="b">${field('', 'login')}</div>`
  const { page } = await open(body, () =>
    newCode({ resendAt: new Date(Date.now() + 60_000).toISOString() }),
  )
  const inside = (id: string, part: string) => page.locator(`#${id} ${part}`)
  await inside('a', '.postern-input').fill(number)
  await inside('a', '.postern-button').click()
  await expect.poll(() => inside('a', '.postern-code').last().isVisible()).toBe(true)
  await page.reload()
  await expect.poll(() => inside('a', 'input.postern-code').isVisible()).toBe(true)
  expect(await inside('b', 'input.postern-code').isVisible()).toBe(false)
  await inside('b', '.postern-input').fill(number)
  expect(await inside('b', '.postern-button').textContent()).toBe('Send code')
})

test('the channel is switched away and back → the field follows the input of the page again', async () => {
  const { page, asked } = await open(`<input id="mine" type="email">${field('for="mine"')}`, () =>
    newCode({ channel: 'email' }),
  )
  await page.getByText('Use SMS instead').click()
  expect(await partsOf(page).address.isVisible()).toBe(true)
  await page.getByText('Use email instead').click()
  expect(await partsOf(page).address.isVisible()).toBe(false)
  await page.locator('#mine').fill('a@shop.example')
  await partsOf(page).send.click()
  await said(page).toContain('is on its way')
  expect(asked[0]?.body.to).toBe('a@shop.example')
  await page.locator('#mine').fill('b@shop.example')
  await expect.poll(() => partsOf(page).send.isVisible()).toBe(true)
})

test('codes have another length now → the code is gone, and the field offers a new one', async () => {
  const errors = [{ path: 'code', message: 'must have 6 digits' }]
  const { page } = await open(field(), ({ path }) =>
    path.endsWith('/check') ? refused(400, 'invalid_request', { errors }) : newCode(),
  )
  await send(page)
  await partsOf(page).code.fill('1234')
  await said(page).toBe('This code is no longer valid. Request a new one.')
})

describe('a keyboard that composes text', () => {
  async function composing(...steps: string[]) {
    const { page, asked } = await open(field(), ({ path }) =>
      path.endsWith('/check') ? refused(422, 'code_mismatch', { triesLeft: 2 }) : newCode(),
    )
    await send(page)
    const keyboard = await page.context().newCDPSession(page)
    const seen: string[] = []
    for (const text of steps) {
      const [selectionStart, selectionEnd] = [text.length, text.length]
      await keyboard.send('Input.imeSetComposition', { text, selectionStart, selectionEnd })
      // The field is drawn again, as by a countdown.
      await page.evaluate('dispatchEvent(new Event("input"))')
      seen.push(await partsOf(page).code.inputValue())
    }
    const commit = (text: string) => keyboard.send('Input.insertText', { text })
    const checked = () => asked.flatMap(({ body }) => body.code ?? [])
    return { page, seen, commit, checked }
  }

  test('wide digits → stay as they are composed, and are read once, when they are done', async () => {
    const steps = ['１', '１２', '１２３', '１２３４']
    const { page, seen, commit, checked } = await composing(...steps)
    expect(seen).toEqual(steps)
    expect(checked()).toEqual([])
    await commit('１２３４')
    await said(page).toContain('This code is wrong')
    expect(checked()).toEqual(['1234'])
  })

  test('letters → the digits before them stay', async () => {
    const { page, seen, commit, checked } = await composing('1', '12', '12w')
    expect(seen).toEqual(['1', '12', '12w'])
    await commit('12我')
    await expect.poll(() => partsOf(page).code.inputValue()).toBe('12')
    expect(checked()).toEqual([])
  })

  test('digits 0 to 9, as on Android → are read with the last digit; a wrong code is removed', async () => {
    const { page, checked } = await composing('1', '12', '123', '1234')
    await said(page).toContain('This code is wrong')
    expect(checked()).toEqual(['1234'])
    expect(await partsOf(page).code.inputValue()).toBe('')
  })
})

test.each([
  ['1 415 555 2671', 'which people of Mexico write as +1'],
  ['two 138', 'which is no number'],
])(
  'a country is shown, and %j is typed, %s → nothing is sent, and the field asks for +',
  async (written) => {
    const { page, asked } = await open(field('country="MX"'), () => newCode())
    await run(page, `field.addEventListener('refused', ({ detail }) => (window.refusal = detail))`)
    await ask(page, written)
    await said(page).toContain('Write it with +')
    expect(await page.evaluate('window.refusal')).toMatchObject({
      during: 'send',
      problem: { code: 'invalid_recipient' },
    })
    await send(page, '+1 415 555 2671')
    expect(asked.map(({ body }) => body.to)).toEqual(['+14155552671'])
  },
)

describe('back at the number while its code is valid', () => {
  const waiting = () => newCode({ resendAt: new Date(Date.now() + 60_000).toISOString() })

  test('the same number → the code can be entered, and no other is sent', async () => {
    const { page, asked } = await open(field(), ({ path }) =>
      path.endsWith('/check') ? passed : waiting(),
    )
    await send(page)
    await page.getByText('Change number').click()
    await expect.poll(() => partsOf(page).send.textContent()).toBe('Enter the code')
    await partsOf(page).address.fill('+8613900139000')
    await expect.poll(() => partsOf(page).send.textContent()).toBe('Send code')
    await ask(page, number)
    await partsOf(page).code.fill('1234')
    await expect.poll(() => passOf(page)).toBe(pass)
    expect(asked.map(({ path }) => path)).toEqual(['/v1/captchas', '/v1/captchas/check'])
  })

  test('a reload at the number → the code can still be entered', async () => {
    const { page, asked } = await open(field(), waiting)
    await send(page)
    await page.getByText('Change number').click()
    await page.reload()
    await partsOf(page).address.fill(number)
    await expect.poll(() => partsOf(page).send.textContent()).toBe('Enter the code')
    await partsOf(page).send.click()
    await expect.poll(() => partsOf(page).code.isVisible()).toBe(true)
    expect(asked).toHaveLength(1)
  })

  test('checks are locked → the number leads to no code that can’t be entered', async () => {
    const { page } = await open(field(), ({ path }) =>
      path.endsWith('/check') ? refused(429, 'locked', { retryAfterMs: 900_000 }) : waiting(),
    )
    await send(page)
    await partsOf(page).code.fill('1234')
    await said(page).toContain('Too many wrong codes')
    await page.getByText('Change number').click()
    await expect.poll(() => partsOf(page).send.textContent()).toMatch(/^Send code in 1[45]:/)
  })

  test('no try is left → there is nothing to go back to', async () => {
    const { page } = await open(field(), ({ path }) =>
      path.endsWith('/check') ? refused(422, 'code_mismatch', { triesLeft: 0 }) : waiting(),
    )
    await send(page)
    await partsOf(page).code.fill('1234')
    await said(page).toContain('no try is left')
    await page.getByText('Change number').click()
    await expect.poll(() => partsOf(page).send.textContent()).toMatch(/^Send code in/)
  })
})

test('the page writes its number another way after the send → the code step stays', async () => {
  const { page } = await open(`<input id="mine" type="tel">${field('for="mine"')}`, () => newCode())
  await page.locator('#mine').fill('13800138000')
  await partsOf(page).send.click()
  await expect.poll(() => partsOf(page).code.isVisible()).toBe(true)
  await page.locator('#mine').fill('138 0013 8000')
  expect(await partsOf(page).code.isVisible()).toBe(true)
  await page.locator('#mine').fill('139 0013 9000')
  expect(await partsOf(page).code.isVisible()).toBe(false)
})

test('a send is under way → another country can’t be chosen, so the code is of the number that was sent', async () => {
  const answer = later<ReturnType<typeof newCode>>()
  const { page } = await open(field('countries="CN,GB"'), () => answer.promise)
  const countries = page.locator('.postern-countries')
  await ask(page, '13800138000')
  await said(page).toBe('Sending…')
  expect(await countries.isDisabled()).toBe(true)
  answer.arrive(refused(422, 'invalid_recipient'))
  await said(page).toContain('not a mobile number')
  expect(await countries.isDisabled()).toBe(false)
})

test('Safari ends a composition before its Enter → that Enter sends nothing', async () => {
  const { page, asked } = await open(field(), () => newCode())
  await partsOf(page).address.fill(number)
  const press = (keyCode: number) =>
    run(
      page,
      `field.querySelector('.postern-input').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: ${keyCode} }))`,
    )
  await press(229)
  expect(await partsOf(page).message.textContent()).toBe('')
  await press(13)
  await expect.poll(() => partsOf(page).code.isVisible()).toBe(true)
  expect(asked).toHaveLength(1)
})

test('a reload while the message is on its way → the field reads the message when it arrives', async () => {
  const reader = `<script>
    window.OTPCredential = class {}
    navigator.credentials.get = () => new Promise((resolve) => (window.arrive = () => resolve({ code: '1234' })))
  </script>`
  const { page } = await open(reader + field(), ({ path }) =>
    path.endsWith('/check') ? passed : newCode(),
  )
  await send(page)
  await page.reload()
  await expect.poll(() => partsOf(page).code.isVisible()).toBe(true)
  await page.evaluate('window.arrive()')
  await said(page).toBe('Confirmed.')
})

test('checks are locked, and the button of the form is pressed → until when stays in sight', async () => {
  const { page } = await open(`<form>${field('required')}<button>Go</button></form>`, ({ path }) =>
    path.endsWith('/check') ? refused(429, 'locked', { retryAfterMs: 900_000 }) : newCode(),
  )
  await send(page)
  await partsOf(page).code.fill('1234')
  await said(page).toContain('Too many wrong codes. You can request a new one at')
  await page.getByRole('button', { name: 'Go' }).click()
  await said(page).toContain('Too many wrong codes. You can request a new one at')
})

describe('the texts of the page', () => {
  const texts = `document.querySelector('postern-code').texts = { send: 'Los' }`
  const send = (page: Page) => expect.poll(() => partsOf(page).send.textContent())

  test('are given before the script arrives → the field has them', async () => {
    const { page } = await open(`${field()}<script>${texts}</script>`, () => newCode())
    await send(page).toBe('Los')
    await run(page, `field.texts = { send: 'Weiter' }`)
    await send(page).toBe('Weiter')
  })

  test('are taken back, as React does it → the field has its own', async () => {
    const { page } = await open(field(), () => newCode())
    await page.evaluate(texts)
    await send(page).toBe('Los')
    await run(page, 'field.texts = undefined')
    await send(page).toBe('Send code')
  })

  test('change as attributes → the field shows the new ones', async () => {
    const { page } = await open(field('text-send="Los"'), () => newCode())
    await send(page).toBe('Los')
    await run(page, `field.setAttribute('text-send', 'Weiter')`)
    await send(page).toBe('Weiter')
    await run(page, `field.removeAttribute('text-send')`)
    await send(page).toBe('Send code')
  })
})

test('the clock of the device is put back by an hour → no countdown of an hour, and the service decides', async () => {
  const { page, asked } = await open(field(), () =>
    newCode({ resendAt: new Date(Date.now() + 60_000).toISOString() }),
  )
  await send(page)
  expect(await partsOf(page).again.textContent()).toMatch(/^Send again in/)
  await page.evaluate('{ const now = Date.now; Date.now = () => now() - 3_600_000 }')
  await expect.poll(() => partsOf(page).again.textContent()).toBe('Send again')
  await partsOf(page).again.click()
  await expect.poll(() => asked.length).toBe(2)
})
