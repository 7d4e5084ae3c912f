import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { createChallenge, verifySolution } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import type { Page, Route } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { languages } from '../../src/i18n/languages.ts'
import { listen } from '../tools/listen.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { closeLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import {
  answerWith,
  ask,
  axe,
  type FieldOptions,
  openField,
  partsOf,
  reservedRoom,
  said,
  scriptPath,
  startField,
  typeRight,
  wrongFor,
} from './field-page.ts'

const { browser, postern, open, sendTo } = await startField()

let drawn = 0
const newNumber = () => `+86138001${String(38000 + ++drawn)}`

async function limiterKeys(): Promise<string[]> {
  const keys = await postern.redis.client.keys(`${postern.redis.prefix}*`)
  return keys.filter((key) => !key.includes('code'))
}

const seen = (page: Page) =>
  page.evaluate('seen') as Promise<Record<string, unknown>[] & { type: string }[]>
const saved = (page: Page) => page.evaluate('JSON.stringify(sessionStorage)') as Promise<string>

/** A page whose clock the test moves. */
async function openWithClock(options: FieldOptions = {}) {
  const page = await open(options)
  await page.clock.install()
  await page.reload()
  await page.evaluate(`{
    window.spoken = []
    const watch = () => new MutationObserver((changes) => {
      for (const { target } of changes) if (target.textContent) spoken.push(target.textContent.trim())
    }).observe(document.querySelector('[role=status]'), { childList: true, characterData: true, subtree: true })
    watch()
  }`)
  return page
}
const spoken = (page: Page) => page.evaluate('spoken') as Promise<string[]>

describe('the whole way', () => {
  test('send → countdown → type → passed: events tell it, and the address leaves the session', async () => {
    const page = await open({ attributes: 'channels="sms"' })
    const to = newNumber()
    const code = await sendTo(page, to)
    const { again } = partsOf(page)
    await expect.poll(() => again.textContent()).toMatch(/^Send again in 0:5\d$/)
    expect(await again.getAttribute('aria-disabled')).toBe('true')
    expect(await saved(page)).toContain(to)
    // The field has the focus, and the last digit submits.
    await page.keyboard.type(code)
    await said(page).toBe('Confirmed.')
    expect((await seen(page)).map(({ type }) => type)).toEqual(['sent', 'passed'])
    expect((await seen(page))[0]).toMatchObject({
      channel: 'sms',
      to: expect.stringMatching(/\*{4}/),
    })
    expect((await seen(page))[1]).toMatchObject({ scene: 'signup' })
    expect(await saved(page)).toBe('{}')
    expect(await page.evaluate(`document.querySelector('postern-code').pass`)).toMatch(/^ey/)
    // Returned to from the history: the pass may be used already.
    await page.evaluate(`dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))`)
    expect(await page.evaluate(`document.querySelector('postern-code').pass`)).toBe('')
    expect(await partsOf(page).address.isVisible()).toBe(true)
  })

  test('over plain http, where browsers have no randomUUID: it sends', async () => {
    const head = '<script>delete Crypto.prototype.randomUUID</script>'
    await sendTo(await open({ head }), newNumber())
  })

  test('a plain form carries the pass and whose it is, and nothing else of Postern; with `required` never before', async () => {
    const page = await open({
      attributes: 'channels="email" required',
      body: '{field}<input name="nick" value="x"><button>Go</button>',
    })
    let body = ''
    await page.route('**/submitted', (route) => {
      body = route.request().postData() ?? ''
      return route.fulfill({ contentType: 'text/html', body: '<title>done</title>' })
    })
    const go = page.getByRole('button', { name: 'Go' })
    await go.click()
    await said(page).toBe('Confirm this with a code first.')
    expect(body).toBe('')
    const code = await sendTo(page, 'a@shop.example')
    await go.click()
    await said(page).toBe('Confirm this with a code first.')
    expect(body).toBe('')
    await typeRight(page, code)
    const { type, pass, channel, to } = (await seen(page)).at(-1) ?? {}
    expect(type).toBe('passed')
    expect(await postern.post('/v1/passes/verify', { pass, channel, to })).toMatchObject({
      status: 200,
      body: { valid: true, scene: 'signup' },
    })
    await go.click()
    await page.waitForURL('**/submitted')
    expect(body).toBe(
      `postern-pass=${pass}&postern-channel=email&postern-to=a%40shop.example&nick=x`,
    )
  })

  test('by keyboard alone, with Enter, and no Enter sends the form around it', async () => {
    const page = await open({ body: '{field}<button>Go</button>' })
    const to = newNumber()
    const path = () => page.evaluate('document.activeElement.className')
    await page.locator('.postern-field').waitFor()
    await page.keyboard.press('Tab')
    expect(await path()).toBe('postern-input')
    await page.keyboard.type(to)
    await page.keyboard.press('Enter')
    await expect.poll(path).toBe('postern-code')
    const code = await postern.codeFor(to)
    await page.keyboard.type(wrongFor(code))
    await said(page).toContain('wrong')
    expect(await path()).toBe('postern-code')
    const caret = () => page.locator('.postern-active').count()
    expect(await caret()).toBe(1)
    await page.keyboard.press('Tab')
    expect(await path()).toContain('postern-again')
    expect(await caret()).toBe(0)
    await page.keyboard.press('Tab')
    expect(await path()).toBe('postern-link')
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.type(code)
    await said(page).toBe('Confirmed.')
    expect(new URL(page.url()).pathname).toBe('/page')
  })

  test('a reload within the countdown keeps code, address and wait; another tab knows nothing', async () => {
    const page = await open()
    const to = newNumber()
    const code = await sendTo(page, to)
    await page.reload()
    const { again, code: input } = partsOf(page)
    await expect.poll(() => input.isVisible()).toBe(true)
    await expect.poll(() => again.textContent()).toMatch(/^Send again in 0:[45]\d$/)
    const other = await page.context().newPage()
    await other.route('**/page', (route) => route.fulfill({ contentType: 'text/html', body: '' }))
    await other.goto(page.url())
    expect(await saved(other)).toBe('{}')
    await typeRight(page, code)
  })

  test('a message pasted whole, and digits of other keyboards', async () => {
    const page = await open()
    const code = await sendTo(page, newNumber())
    await page.evaluate(`{
      const data = new DataTransfer()
      data.setData('text', 'Your code: ${[...wrongFor(code)].join(' ')}.')
      document.querySelector('.postern-code').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, cancelable: true }))
    }`)
    await said(page).toContain('wrong')
    const fullWidth = [...code]
      .map((digit) => String.fromCodePoint(0xff10 + Number(digit)))
      .join('')
    await typeRight(page, fullWidth)
  })

  test('the other channel, another address: each asks anew', async () => {
    const page = await open({ attributes: 'channels="sms,email"' })
    const to = newNumber()
    await sendTo(page, to)
    const { address, links, send } = partsOf(page)
    await page.getByText('Change number').click()
    expect(await address.inputValue()).toBe(to)
    expect(await send.textContent()).toBe('Enter the code')
    await address.fill(newNumber())
    expect(await send.textContent()).toBe('Send code')
    await page.getByText('Use email instead').click()
    expect(await address.getAttribute('autocomplete')).toBe('email')
    const code = await sendTo(page, 'b@shop.example')
    expect(await links.allTextContents()).toEqual(['Change address', 'Use SMS instead'])
    await page.keyboard.type(code)
    await said(page).toBe('Confirmed.')
  })

  test('an input of the page names the address: it is read when the code is asked for', async () => {
    const page = await open({
      attributes: 'for="mine"',
      body: '<label>Mail <input id="mine" type="email" name="mail"></label>{field}',
    })
    const { send, address, message } = partsOf(page)
    await send.click()
    expect(await message.textContent()).toBe('Enter your email address first.')
    expect(await page.evaluate('document.activeElement.id')).toBe('mine')
    expect(await address.isVisible()).toBe(false)
    await page.locator('#mine').fill('c@shop.example')
    await send.click()
    await said(page).toContain('on its way')
    await typeRight(page, await postern.codeFor('c@shop.example'))
  })
})

describe('refusals show what to do', () => {
  test('wrong: tries left, then none: the field is closed until a new code', async () => {
    const page = await open()
    const code = await sendTo(page, newNumber())
    const input = partsOf(page).code
    await input.fill(wrongFor(code))
    await said(page).toBe('This code is wrong. You have 2 tries left.')
    expect(await input.getAttribute('aria-invalid')).toBe('true')
    expect(await input.inputValue()).toBe('')
    await input.fill(wrongFor(code))
    await said(page).toBe('This code is wrong. You have one try left.')
    await input.fill(wrongFor(code))
    await said(page).toBe(
      'This code was wrong, and no try is left. You can request a new one when the countdown ends.',
    )
    expect(await input.getAttribute('readonly')).toBe('')
    expect((await seen(page)).at(-1)).toMatchObject({ type: 'refused', during: 'check' })
  })

  test('limited: the button counts, the other channel is open; after a reload it still counts', async () => {
    const to = newNumber()
    expect((await postern.post('/v1/captchas', { channel: 'sms', to })).status).toBe(202)
    const page = await open()
    const { address, send } = partsOf(page)
    await ask(page, to)
    await said(page).toContain('Too many codes were requested. Wait for the countdown')
    expect(await send.textContent()).toMatch(/^Send code in (1:00|0:\d\d)$/)
    await page.reload()
    await address.fill(to)
    expect(await send.textContent()).toMatch(/^Send code in (1:00|0:\d\d)$/)
    await page.getByText('Use email instead').click()
    expect(await send.textContent()).toBe('Send code')
  })

  test('gone: a newer code has replaced it', async () => {
    const page = await open()
    const to = newNumber()
    const code = await sendTo(page, to)
    await postern.redis.client.del(...(await limiterKeys()))
    const body = { channel: 'sms', to, scene: 'signup' }
    expect((await postern.post('/v1/captchas', body)).status).toBe(202)
    await partsOf(page).code.fill(code)
    await said(page).toContain('This code is no longer valid. You can request a new one when')
  })

  test('no number, no address, a destination that is not allowed', async () => {
    const page = await open()
    const { address, send } = partsOf(page)
    await send.click()
    await said(page).toBe('Enter your mobile number first.')
    await ask(page, '12')
    await said(page).toContain('Write it with + and its country code')
    expect(await page.locator('.postern-country').isVisible()).toBe(false)
    await ask(page, '+12')
    await said(page).toBe('This is not a mobile number. Check the number and its country code.')
    expect(await address.getAttribute('aria-invalid')).toBe('true')
    await address.fill(newNumber())
    expect(await address.getAttribute('aria-invalid')).toBe('false')
    await page.route('**/v1/captchas', answerWith(403, { code: 'destination_not_allowed' }))
    await send.click()
    await said(page).toBe('No codes are sent to this number. Use another one.')
  })

  test('offline, no answer, 503, a foreign 502: nothing typed is lost, and a repeat has the same Idempotency-Key', async () => {
    const page = await open()
    const { address, send } = partsOf(page)
    const keys: (string | undefined)[] = []
    page.on('request', (request) => {
      if (request.method() === 'POST') keys.push(request.headers()['idempotency-key'])
    })
    const to = newNumber()
    await address.fill(to)
    await page.context().setOffline(true)
    await send.click()
    await said(page).toBe('You are offline. Connect to the internet, then try again.')
    await page.context().setOffline(false)
    await said(page).toBe('')
    const away = 'The service does not answer right now. Wait a moment, then try again.'
    for (const answer of [
      (route: Route) => route.abort(),
      answerWith(503, { code: 'unavailable' }, { 'retry-after': '2' }),
      (route: Route) => route.fulfill({ status: 502, contentType: 'text/html', body: '<h1>Bad' }),
    ]) {
      await page.route('**/v1/captchas', answer, { times: 1 })
      await send.click()
      await said(page).toBe(away)
    }
    const code = await sendTo(page, to)
    expect(keys).toHaveLength(5)
    expect(new Set(keys).size).toBe(1)
    await page.route('**/v1/captchas/check', answerWith(503, { code: 'unavailable' }), { times: 1 })
    await page.keyboard.type(code)
    await said(page).toBe(away)
    await page.keyboard.press('Enter')
    await said(page).toBe('Confirmed.')
  })
})

describe('what time brings is shown, once', () => {
  test('the code is sent → a new one may be had → the code has expired; a new one replaces it', async () => {
    const page = await openWithClock()
    const to = newNumber()
    await sendTo(page, to)
    const onItsWay = 'A code of 4 digits is on its way.'
    await said(page).toBe(onItsWay)
    await page.clock.fastForward('00:58')
    await expect.poll(() => partsOf(page).again.textContent()).toMatch(/^Send again in 0:0[12]$/)
    await page.clock.fastForward('00:03')
    const canResend = 'If it does not arrive, request a new one.'
    await said(page).toBe(`${onItsWay} ${canResend}`)
    expect(await partsOf(page).again.textContent()).toBe('Send again')
    await page.clock.fastForward('03:55')
    await said(page).toBe(`${onItsWay} ${canResend}`)
    await page.clock.fastForward('00:10')
    await said(page).toBe('This code has expired. Request a new one.')
    expect(await partsOf(page).code.getAttribute('readonly')).toBe('')
    expect((await spoken(page)).filter((text) => text !== 'Sending…')).toEqual([
      onItsWay,
      canResend,
      'This code has expired.',
      'Request a new one.',
    ])
  })

  test('a first digit changes no message; the pass expires, and the field begins anew', async () => {
    const page = await openWithClock()
    const [first, ...others] = await sendTo(page, newNumber())
    await page.keyboard.type(first as string)
    expect(await partsOf(page).code.inputValue()).toBe(first)
    await said(page).toBe('A code of 4 digits is on its way.')
    await page.keyboard.type(others.join(''))
    await said(page).toBe('Confirmed.')
    await page.clock.fastForward('06:00')
    await said(page).toBe('The confirmation has expired. Request a new code.')
    expect(await page.evaluate(`document.querySelector('postern-code').pass`)).toBe('')
    expect(await partsOf(page).address.isVisible()).toBe(true)
  })

  test('a device slept while the pass expired: its timers stood still, and the field begins anew', async () => {
    const page = await open()
    await typeRight(page, await sendTo(page, newNumber()))
    await page.evaluate('{ const now = Date.now; Date.now = () => now() + 360_000 }')
    await said(page).toBe('The confirmation has expired. Request a new code.')
    expect(await page.locator('[name=postern-pass]').inputValue()).toBe('')
  })

  test.each([
    ['en', 'This code is wrong. You have 2 tries left.', 'You can request a code now.'],
    ['zh-CN', '验证码错误，还可再试 2 次。', '现在可以获取验证码了。'],
  ])(
    '%s: a new one may be had, also after a wrong code and while one is typed',
    async (lang, wrong, ready) => {
      const page = await openWithClock({ lang })
      const code = await sendTo(page, newNumber())
      await partsOf(page).code.fill(wrongFor(code))
      await said(page).toBe(wrong)
      await page.clock.fastForward('01:01')
      await said(page).toBe(lang === 'en' ? `${wrong} ${ready}` : wrong + ready)
      await page.keyboard.type('1')
      await expect.poll(() => partsOf(page).message.innerText()).toBe(ready)
      expect((await spoken(page)).filter((text) => text === ready)).toHaveLength(1)
    },
  )

  test('the countdown of the last second; then a resend: the old code does not pass, and that is shown', async () => {
    const page = await openWithClock()
    const first = newNumber()
    await sendTo(page, first)
    const { again } = partsOf(page)
    await page.clock.pauseAt(Date.now() + 59_500)
    await page.clock.runFor(300)
    await expect.poll(() => again.textContent()).toMatch(/^Send again in 0:0[01]$|^Send again$/)
    await page.clock.resume()
    await page.clock.fastForward('00:02')
    await expect.poll(() => again.textContent()).toBe('Send again')
    await postern.redis.client.del(...(await limiterKeys()))
    await again.click()
    await said(page).toBe('A new code is on its way. The old code no longer works.')
    await expect.poll(() => again.textContent()).toMatch(/^Send again in /)
  })

  test('by email, and in Chinese', async () => {
    const page = await openWithClock({ attributes: 'channels="email"', lang: 'zh-CN' })
    await sendTo(page, 'resend@shop.example')
    await page.clock.fastForward('01:01')
    await said(page).toBe(
      '4 位验证码已发出，请查收邮件，也请查看垃圾邮件。如未收到，现在可以重新获取。',
    )
    await postern.redis.client.del(...(await limiterKeys()))
    await partsOf(page).again.click()
    await said(page).toBe('新的验证码已发出，请查收邮件，也请查看垃圾邮件。之前的验证码已失效。')
    await page.clock.fastForward('05:01')
    await said(page).toBe('验证码已过期。请重新获取。')
  })

  test('a reload after the life of the code begins anew, with the wait that still holds', async () => {
    const page = await openWithClock()
    const to = newNumber()
    await sendTo(page, to)
    const inSession = JSON.parse(await saved(page)) as Record<string, string>
    const [name = '', text = ''] = Object.entries(inSession)[0] ?? []
    const { sent, waits, ...rest } = JSON.parse(text)
    const untilMs = sent.expiresAtMs + 60_000
    const longer = { ...rest, sent, waits: { sms: { to, untilMs } } }
    await page.evaluate(
      `sessionStorage.setItem('${name}', ${JSON.stringify(JSON.stringify(longer))})`,
    )
    await page.clock.fastForward('05:01')
    await page.reload()
    const { address, send, message } = partsOf(page)
    expect(await address.isVisible()).toBe(true)
    expect(await message.textContent()).toBe('')
    await address.fill(to)
    await expect.poll(() => send.textContent()).toMatch(/^Send code in 0:5\d$/)
    await address.fill(newNumber())
    expect(await send.textContent()).toBe('Send code')
  })

  test('what is saved in another shape is left', async () => {
    const page = await open()
    await sendTo(page, newNumber())
    const [name = ''] = Object.keys(JSON.parse(await saved(page)))
    for (const text of ['null', '{}', '7', '{"channel":"sms"}', 'x']) {
      await page.evaluate(`sessionStorage.setItem('${name}', '${text}')`)
      await page.reload()
      await expect.poll(() => partsOf(page).address.isVisible()).toBe(true)
    }
  })
})

describe('a lock of checks', () => {
  test('the shipped one: after three wrong guesses a new code passes; after nine it shows until when', async () => {
    const lockout = { limit: 9, window: '15m', lock: '15m' }
    const check = [{ name: 'guesses', key: '{channel}:{to}:{ip}', lockout }]
    const service = await startPostern({ policyFile: { policies: { ...noLimits, check } } })
    const page = await openField(browser, service)
    const { code, again } = partsOf(page)
    const to = newNumber()
    const guessWrong = async (right: string, expected: string[]) => {
      for (const words of expected) {
        await code.fill(wrongFor(right))
        await said(page).toContain(words)
      }
    }
    const advised = 'no try is left. Request a new one.'
    const codeSent = async () => {
      await said(page).toContain('on its way')
      const { id } = (await seen(page)).at(-1) as unknown as { id: string }
      return service.codeFor(id)
    }
    await ask(page, to)
    await guessWrong(await codeSent(), ['2 tries left', 'one try left', advised])
    await again.click()
    await typeRight(page, await codeSent())

    await page.evaluate(`document.querySelector('postern-code').reset()`)
    await ask(page, to)
    await guessWrong(await codeSent(), ['2 tries left', 'one try left', advised])
    await again.click()
    await guessWrong(await codeSent(), ['2 tries left', 'one try left', advised])
    await again.click()
    await guessWrong(await codeSent(), ['2 tries left', 'one try left', 'Too many wrong codes.'])
    await said(page).toMatch(
      /^Too many wrong codes. You can request a new one at (?:\w+, \w+ \d+, )?\d+:\d\d\s[AP]M\.$/,
    )
    await expect.poll(() => again.textContent()).toMatch(/^Send again in (15:00|14:\d\d)$/)
    expect(await again.getAttribute('aria-disabled')).toBe('true')
  })

  const lockedForMs = 900_000
  const wrong = (more: object) => answerWith(422, { code: 'code_mismatch', triesLeft: 0, ...more })

  test('begun by a wrong code: until when, a countdown, nothing that would fail; a reload keeps it; then it has ended', async () => {
    const page = await open({ lang: 'en-GB' })
    await page.clock.install({ time: new Date(2026, 10, 23, 14, 20, 30) })
    await page.reload()
    const to = newNumber()
    await sendTo(page, to)
    await page.route('**/v1/captchas/check', wrong({ lockedForMs }))
    await partsOf(page).code.fill('1234')
    const locked = 'Too many wrong codes. You can request a new one at 14:36.'
    await said(page).toBe(locked)
    const { again, address, code, send } = partsOf(page)
    const isClosed = async () => {
      await expect.poll(() => again.textContent()).toMatch(/^Send again in 1[45]:\d\d$/)
      expect(await again.getAttribute('aria-disabled')).toBe('true')
      expect(await code.getAttribute('readonly')).toBe('')
    }
    await isClosed()
    await page.getByText('Change number').click()
    await said(page).toBe(locked)
    expect(await send.getAttribute('aria-disabled')).toBe('true')
    await address.fill(newNumber())
    await said(page).toBe('')
    expect(await send.textContent()).toBe('Send code')
    await page.reload()
    await address.fill(to)
    await said(page).toBe(locked)
    await expect.poll(() => send.textContent()).toMatch(/^Send code in 1[45]:\d\d$/)
    await page.clock.fastForward('15:01')
    await said(page).toBe('')
    expect(await send.textContent()).toBe('Send code')
  })

  test.each([
    ['tries are left, the lock ends before the code does', 1, 30_000, 'You can type the code now.'],
    ['no try is left', 0, 90_000, 'You can request a code now.'],
  ])('%s: what can be done then is shown', async (_, triesLeft, lockedForMs, then) => {
    const page = await openWithClock()
    const code = await sendTo(page, newNumber())
    await page.route('**/v1/captchas/check', wrong({ triesLeft, lockedForMs }), { times: 1 })
    await partsOf(page).code.fill(wrongFor(code))
    await said(page).toContain('Too many wrong codes.')
    await page.clock.fastForward(lockedForMs + 1_000)
    await said(page).toBe(then)
    if (triesLeft === 0) return
    await typeRight(page, code)
  })

  test.each([
    [
      'ends in time: the code may be typed then',
      30_000,
      'A code is on its way.',
      'You can type the code now.',
    ],
    [
      'outlives the code: a new one may be had then',
      600_000,
      'Too many wrong codes.',
      'You can request a code now.',
    ],
  ])('a code is sent under a lock that %s', async (_, lockedForMs, first, then) => {
    const page = await openWithClock()
    await page.route('**/v1/captchas', async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, json: { ...(await response.json()), lockedForMs } })
    })
    await sendTo(page, newNumber())
    await said(page).toContain(first)
    expect(await partsOf(page).code.getAttribute('readonly')).toBe('')
    await page.clock.fastForward(lockedForMs + 1_000)
    await said(page).toBe(then)
    expect(await partsOf(page).code.getAttribute('readonly')).toBe(
      then.includes('type') ? null : '',
    )
  })
})

describe('while a request is under way', () => {
  /** Answers wait until the test releases them. */
  async function hold(page: Page, path: string) {
    const waiting: (() => void)[] = []
    let asked = 0
    await page.route(path, async (route) => {
      asked++
      await new Promise<void>((resolve) => waiting.push(resolve))
      await route.continue()
    })
    return { asked: () => asked, letGo: () => waiting.splice(0).map((resolve) => resolve()) }
  }

  test('the button pressed again, Enter, and the form sent: one code is asked for', async () => {
    const page = await open({ attributes: 'required', body: '{field}<button>Go</button>' })
    const { address, send, code } = partsOf(page)
    const requests = await hold(page, '**/v1/captchas')
    await ask(page, newNumber())
    await expect.poll(requests.asked).toBe(1)
    await send.click({ force: true })
    await address.press('Enter')
    await page.getByRole('button', { name: 'Go' }).click()
    await said(page).toBe('Sending…')
    expect(await address.getAttribute('readonly')).toBe('')
    requests.letGo()
    await expect.poll(() => code.isVisible()).toBe(true)
    expect(requests.asked()).toBe(1)
    expect(new URL(page.url()).pathname).toBe('/page')
  })

  test('a code is checked once, and its pass is not lost by a button pressed meanwhile', async () => {
    const page = await openWithClock()
    const right = await sendTo(page, newNumber())
    const requests = await hold(page, '**/v1/captchas/check')
    const { code, again, links } = partsOf(page)
    await code.fill(right)
    await expect.poll(requests.asked).toBe(1)
    await code.press('Enter')
    for (const link of await links.all()) {
      expect(await link.getAttribute('aria-disabled')).toBe('true')
      await link.click({ force: true })
    }
    await again.click({ force: true })
    await page.evaluate(`{
      const data = new DataTransfer()
      data.setData('text', '9999')
      document.querySelector('.postern-code').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, cancelable: true }))
    }`)
    expect(await code.inputValue()).toBe(right)
    requests.letGo()
    await said(page).toBe('Confirmed.')
    expect(requests.asked()).toBe(1)
    await page.clock.fastForward('01:01')
    let sends = 0
    page.on('request', () => sends++)
    await page.evaluate(`document.querySelector('.postern-again').click()`)
    await said(page).toBe('Confirmed.')
    expect(sends).toBe(0)
  })

  test('left while a code is asked for: the same number asks under the same key, and nothing is sent twice', async () => {
    const page = await open()
    const keys: (string | undefined)[] = []
    page.on('request', (request) => {
      if (request.method() === 'POST') keys.push(request.headers()['idempotency-key'])
    })
    const to = newNumber()
    const requests = await hold(page, '**/v1/captchas')
    await ask(page, to)
    await expect.poll(requests.asked).toBe(1)
    await page.getByText('Use email instead').click()
    requests.letGo()
    await postern.codeFor(to)
    await page.unroute('**/v1/captchas')
    await page.getByText('Use SMS instead').click()
    await ask(page, to)
    await said(page).toBe('A code of 4 digits is on its way.')
    expect(keys).toHaveLength(2)
    expect(keys[1]).toBe(keys[0])
    expect(await postern.messages(to)).toHaveLength(1)
  })
})

describe('phone numbers', () => {
  const numberSent = async (page: Page) => (await seen(page)).at(-1)?.to

  test('one country: digits are grouped while they are typed, and E.164 is sent', async () => {
    const page = await open({ attributes: 'country="CN" channels="sms"' })
    let asked: Record<string, unknown> = {}
    page.on('request', (request) => {
      if (request.method() === 'POST') asked = request.postDataJSON()
    })
    const { address, send, code } = partsOf(page)
    expect(await address.getAttribute('autocomplete')).toBe('tel')
    expect(await page.locator('.postern-prefix').textContent()).toBe('+86')
    expect(await page.locator('.postern-countries').isVisible()).toBe(false)
    const to = newNumber()
    const national = to.slice(3)
    await address.pressSequentially(national)
    const written = `${national.slice(0, 3)} ${national.slice(3, 7)} ${national.slice(7)}`
    expect(await address.inputValue()).toBe(written)
    await send.click()
    await expect.poll(() => code.isVisible()).toBe(true)
    expect(asked.to).toBe(to)
    await typeRight(page, await postern.codeFor(to))
    expect(await numberSent(page)).toBe(to)
    expect(await page.locator('[name=postern-to]').inputValue()).toBe(to)
  })

  test('the caret stays where a number is changed, and every digit can be taken away', async () => {
    const page = await open({ attributes: 'country="CN"' })
    const { address } = partsOf(page)
    const caret = () => page.evaluate('document.activeElement.selectionStart')
    await address.pressSequentially('13800138')
    expect(await address.inputValue()).toBe('138 0013 8')
    await page.keyboard.press('Backspace')
    expect(await address.inputValue()).toBe('138 0013')
    for (let n = 0; n < 5; n++) await page.keyboard.press('ArrowLeft')
    await page.keyboard.type('99')
    expect([await address.inputValue(), await caret()]).toEqual(['138 9900 13', 6])
    await page.keyboard.press('Backspace')
    expect([await address.inputValue(), await caret()]).toEqual(['138 9001 3', 5])
    await page.keyboard.press('ArrowLeft')
    // A key pressed before the space moves the caret past it.
    await page.keyboard.press('Backspace')
    expect([await address.inputValue(), await caret()]).toEqual(['138 9001 3', 3])
    await page.keyboard.press('Delete')
    expect([await address.inputValue(), await caret()]).toEqual(['138 9001 3', 4])
    await page.keyboard.press('Delete')
    expect([await address.inputValue(), await caret()]).toEqual(['138 0013', 4])
    await address.press('Home')
    await page.keyboard.type('1')
    expect([await address.inputValue(), await caret()]).toEqual(['113 8001 3', 1])
    await address.press('End')
    for (let n = 0; n < 10; n++) await page.keyboard.press('Backspace')
    expect(await address.inputValue()).toBe('')
    await page.keyboard.type('ada')
    expect(await address.inputValue()).toBe('ada')
  })

  test('a list of countries, by their names; a number with + overrides it, and a pick overrides the number', async () => {
    const page = await open({ attributes: 'countries="GB,cn, HK,XX,GB" country="HK"' })
    const { address } = partsOf(page)
    const list = page.getByRole('combobox', { name: 'Country or region' })
    const prefix = page.locator('.postern-prefix')
    expect(await list.locator('option').allTextContents()).toEqual([
      'China (\u2068+86\u2069)',
      expect.stringMatching(/^Hong Kong.* \(\u2068\+852\u2069\)$/),
      'United Kingdom (\u2068+44\u2069)',
    ])
    expect(await list.inputValue()).toBe('HK')
    await address.pressSequentially('91234567')
    expect(await address.inputValue()).toBe('9123 4567')
    await list.selectOption('CN')
    expect([await prefix.textContent(), await address.inputValue()]).toEqual(['+86', '912 3456 7'])
    // Filled in by a browser, or pasted.
    await address.fill('+447400123456')
    expect(await address.inputValue()).toBe('+44 7400 123456')
    expect([await prefix.textContent(), await list.inputValue()]).toEqual(['GB', 'GB'])
    await list.selectOption('HK')
    expect([await prefix.textContent(), await address.inputValue()]).toEqual([
      '+852',
      '7400 123456',
    ])
    await address.fill('+33612345678')
    expect([await prefix.textContent(), await list.inputValue()]).toEqual(['', ''])
    const to = newNumber()
    await ask(page, to)
    await typeRight(page, await postern.codeFor(to))
  })

  test('the form’s reset goes back to the first country; its fields are Postern’s alone', async () => {
    const page = await open({
      attributes: 'countries="GB,CN"',
      body: '{field}<input name="nick"><button type="reset">Clear</button>',
    })
    const list = page.getByRole('combobox')
    await list.selectOption('CN')
    await page.getByRole('button', { name: 'Clear' }).click()
    expect(await list.inputValue()).toBe('GB')
    expect(await page.locator('.postern-prefix').textContent()).toBe('+44')
    const names = await page.evaluate('[...new FormData(document.forms[0]).keys()]')
    expect(names).toEqual(['postern-pass', 'postern-channel', 'postern-to', 'nick'])
  })

  test('an input of the page, and an address that it knows: with the country of the field', async () => {
    const page = await open({
      attributes: 'for="mine" country="CN"',
      body: '<label>Number <input id="mine" type="tel"></label>{field}',
    })
    // A mail address in an input for numbers is a mistake: no mail is sent.
    await page.locator('#mine').fill('c@shop.example')
    await partsOf(page).send.click()
    await said(page).toContain('No code can be sent to this number')
    const to = newNumber()
    await page.locator('#mine').fill(to.slice(3))
    expect(await page.locator('.postern-country').isVisible()).toBe(false)
    await partsOf(page).send.click()
    await typeRight(page, await postern.codeFor(to))
    expect(await numberSent(page)).toBe(to)
  })

  test.each([
    ['zh-CN', '中国 (\u2068+86\u2069)'],
    ['zh_CN', '中国 (\u2068+86\u2069)'],
    ['ar', 'الصين (\u2068+86\u2069)'],
    ['not a language', 'China (\u2068+86\u2069)'],
  ])('names in the language of the page: %s', async (lang, name) => {
    const page = await open({ lang, attributes: 'countries="CN,GB"' })
    expect(await page.locator('.postern-countries option').allTextContents()).toContain(name)
  })

  test.each([
    ['360 px, light, left to right', 360, 'light', 'ltr'],
    ['1440 px, dark, right to left', 1440, 'dark', 'rtl'],
  ] as const)(
    '%s: axe finds nothing, nothing scrolls sideways, nothing moves',
    async (_, width, colorScheme, dir) => {
      const page = await open({
        attributes: `countries="SA,CN" dir="${dir}"`,
        context: { viewport: { width, height: 700 }, colorScheme, reducedMotion: 'reduce' },
      })
      const { address } = partsOf(page)
      const height = async () => (await page.locator('postern-code').boundingBox())?.height
      await page.locator('.postern-field').waitFor()
      const before = await height()
      for (const text of ['', '501234567', '+8613800138000', '+33612345678']) {
        await address.fill(text)
        expect({ text, axe: await axe(page) }).toEqual({ text, axe: [] })
        expect(await page.evaluate('document.documentElement.scrollWidth > innerWidth')).toBe(false)
        expect(await height()).toBe(before)
      }
      // A number is read from left to right everywhere, so its country is to its left.
      const box = await page.locator('.postern-country').boundingBox()
      expect(box?.x).toBeLessThan((await address.boundingBox())?.x ?? 0)
    },
  )
})

describe('what a visitor stumbles over', () => {
  const paste = (page: Page, text: string, type = 'paste') =>
    page.evaluate(`{
      const data = new DataTransfer()
      data.setData('text', ${JSON.stringify(text)})
      const event = '${type}' === 'paste'
        ? new ClipboardEvent('paste', { clipboardData: data, cancelable: true })
        : new DragEvent('drop', { dataTransfer: data, cancelable: true })
      document.querySelector('.postern-code').dispatchEvent(event)
    }`)

  test('a message pasted or dropped: the code in it; with none or several nothing is put in, and no try is lost', async () => {
    const page = await open()
    const code = await sendTo(page, newNumber())
    let checks = 0
    page.on('request', (request) => request.url().endsWith('/check') && checks++)
    const unclear = 'That text does not have exactly one code of 4 digits. Type the code.'
    // Like a keyboard that inserts a whole text.
    const insert = (page: Page, text: string) => page.keyboard.insertText(text)
    for (const put of [paste, insert]) {
      for (const text of ['Acme24', `${code} or ${wrongFor(code)}`, `2024${code}`]) {
        await page.keyboard.type('7')
        await put(page, text)
        await said(page).toBe(unclear)
        expect(await partsOf(page).code.inputValue()).toBe('7')
        await page.keyboard.press('Backspace')
        await said(page).toBe('')
      }
    }
    expect(checks).toBe(0)
    await paste(page, `Acme24: your code is ${wrongFor(code)}`, 'drop')
    await said(page).toContain('2 tries left')
    await paste(page, `Acme24: your code is ${code}`)
    await said(page).toBe('Confirmed.')
    expect(checks).toBe(2)
  })

  test('a keyboard inserts more digits than there is room for: they replace what was typed', async () => {
    const page = await open()
    const code = await sendTo(page, newNumber())
    const checked: string[] = []
    page.on('request', (request) => {
      if (request.url().endsWith('/check')) checked.push(request.postDataJSON().code)
    })
    await page.keyboard.type('77')
    await page.keyboard.insertText(code.slice(0, 3))
    expect(await partsOf(page).code.inputValue()).toBe(code.slice(0, 3))
    await page.keyboard.insertText(code)
    await said(page).toBe('Confirmed.')
    expect(checked).toEqual([code])
  })

  test('a letter typed between digits changes nothing', async () => {
    const page = await open()
    await sendTo(page, newNumber())
    await page.keyboard.type('1a2')
    expect(await partsOf(page).code.inputValue()).toBe('12')
  })

  test.each([360, 600, 1440])(
    '%i px: while the script is loaded nothing is shown, and nothing moves when it is there',
    async (width) => {
      const context = { viewport: { width, height: 700 } }
      const page = await open({ context, head: reservedRoom })
      await page.locator('.postern-field').waitFor()
      const height = async () => (await page.locator('postern-code').boundingBox())?.height
      const after = await height()
      const { promise: isHeld, resolve: letGo } = Promise.withResolvers<void>()
      await page.route('**/browser/*.js', async (route) => {
        await isHeld
        await route.continue()
      })
      await page.reload({ waitUntil: 'commit' })
      await page.locator('postern-code').waitFor()
      expect(await page.locator('main').innerText()).toBe('Sign up')
      expect(await height()).toBe(after)
      letGo()
      await page.locator('.postern-field').waitFor()
      expect(await height()).toBe(after)
    },
  )
})

describe('challenges', () => {
  test('altcha: solved in the page, sent along, and right by altcha-lib', async () => {
    const secrets = { hmacSignatureSecret: 'a', hmacKeySignatureSecret: 'b' }
    const challenge = await createChallenge({
      algorithm: 'PBKDF2/SHA-256',
      cost: 200,
      counter: 500,
      deriveKey,
      ...secrets,
    })
    const page = await open()
    const offer = { code: 'challenge_required', challenge: { kind: 'altcha', challenge } }
    let isRight = false
    await page.route('**/v1/captchas', async (route) => {
      const { challenge: answer, ...body } = route.request().postDataJSON()
      if (!answer) return answerWith(403, offer)(route)
      const { solution } = JSON.parse(Buffer.from(answer, 'base64').toString())
      const { verified } = await verifySolution({ challenge, solution, deriveKey, ...secrets })
      isRight = verified
      return route.continue({ postData: body })
    })
    await sendTo(page, newNumber())
    expect(isRight).toBe(true)
    expect((await seen(page)).map(({ type }) => type)).toEqual(['sent'])
  })

  test('altcha, again and again refused: no endless work', async () => {
    const challenge = await createChallenge({
      algorithm: 'PBKDF2/SHA-256',
      cost: 1,
      counter: 5,
      deriveKey,
      hmacSignatureSecret: 'a',
    })
    const page = await open()
    let asked = 0
    await page.route('**/v1/captchas', (route) => {
      asked++
      return answerWith(403, {
        code: 'challenge_required',
        challenge: { kind: 'altcha', challenge },
      })(route)
    })
    await ask(page, newNumber())
    await said(page).toBe('Could not confirm that you are a person. Try again.')
    expect(asked).toBe(4)
  })

  test('turnstile: the page gets the site key, shows the widget in its place, and hands in the token', async () => {
    const page = await open({
      head: `<script>addEventListener('challenge', (event) => {
        event.preventDefault()
        const { kind, siteKey, container } = event.detail
        const widget = document.createElement('button')
        widget.type = 'button'
        widget.textContent = kind + ' ' + siteKey
        widget.onclick = () => event.target.answer('token')
        container.append(widget)
      })</script>`,
    })
    const offer = { code: 'challenge_required', challenge: { kind: 'turnstile', siteKey: '1x' } }
    const answers: unknown[] = []
    await page.route('**/v1/captchas', (route) => {
      const { challenge, ...body } = route.request().postDataJSON()
      answers.push(challenge)
      return challenge ? route.continue({ postData: body }) : answerWith(403, offer)(route)
    })
    await ask(page, newNumber())
    await said(page).toBe('Please answer the question below to go on.')
    await page.getByText('turnstile 1x').click()
    await said(page).toContain('on its way')
    expect(answers).toEqual([undefined, 'token'])
    expect(await page.locator('.postern-challenge').innerHTML()).toBe('')
  })
})

describe('in a page of another origin', () => {
  /** At `localhost`, while the service is at 127.0.0.1: another origin, and one that has `crypto.subtle`. */
  async function openForeign(
    policyFile: Record<string, unknown> = {},
    listed?: string[],
    lang = 'en',
  ) {
    const service = await startPostern({ policyFile: { policies: noLimits, ...policyFile } })
    const script = `${service.url}${scriptPath}`
    const bytes = Buffer.from(await (await fetch(script)).arrayBuffer())
    const integrity = `sha384-${createHash('sha384').update(bytes).digest('base64')}`
    let html = ''
    const policy = `default-src 'none'; script-src ${service.url}; style-src 'self'; img-src data:; connect-src ${service.url}; require-trusted-types-for 'script'`
    const server = createServer((_, response) =>
      response
        .writeHead(200, { 'content-type': 'text/html', 'content-security-policy': policy })
        .end(html),
    )
    const origin = (await listen(server)).replace('127.0.0.1', 'localhost')
    const key = await publishableKey(service.database, { origins: listed ?? [origin] })
    const context = closeLater(await browser.newContext())
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(String(error)))
    html = `<!doctype html><html lang="${lang}"><title>shop</title><link rel="icon" href="data:,">
      <script type="module" src="${script}" integrity="${integrity}" crossorigin></script>
      <postern-code key="${key}" src="${service.url}" channels="email"></postern-code>`
    await page.goto(origin)
    return { page, service, complaints, script, origin }
  }

  test.each([
    ['no key lists: neither key nor address is sent', false, ['GET 403']],
    ['only another key lists', true, ['POST 403']],
  ])('that %s; the field and the console show it', async (_, hasOther, expected) => {
    const { page, service, origin, complaints } = await openForeign({}, ['https://shop.example'])
    if (hasOther) await publishableKey(service.database, { origins: [origin] })
    const answers: string[] = []
    page.on('response', (answer) => {
      if (!answer.url().includes('/v1/')) return
      answers.push(`${answer.request().method()} ${answer.status()}`)
    })
    await ask(page, 'f@shop.example')
    const told = `This form is not allowed at ${origin}. Please tell the owner of this site.`
    await said(page).toBe(told)
    expect(answers).toEqual(expected)
    expect(complaints.join()).toContain('was refused')
  })

  test('with no server there: no answer, as ever', async () => {
    const { page } = await openForeign()
    await page.route('**/v1/**', (route) => route.abort())
    await ask(page, 'g@shop.example')
    await said(page).toContain('The service does not answer right now.')
  })

  test('a strict Content-Security-Policy, integrity, and a challenge, in another language: all of it works, and the browser reports nothing', async () => {
    const rules = [{ name: 'human', key: '{ip}', sliding: '1 per 1h', mode: 'challenge' }]
    const { page, service, complaints } = await openForeign(
      { browser: { rules }, challenge: { kind: 'altcha', tries: 100 } },
      undefined,
      'zh',
    )
    for (const to of ['d@shop.example', 'e@shop.example']) {
      await ask(page, to)
      await said(page).toContain('已发出')
      const place = await page.locator('.postern-digit').first().boundingBox()
      expect(place).toMatchObject({ width: 48, height: 48 })
      const { text } = await service.messageFor(to)
      const code = /\d{4}/.exec(text)?.[0] ?? ''
      await partsOf(page).code.fill(code)
      await said(page).toBe(languages.zh.field.passed)
      await page.reload()
    }
    // The one refusal that demanded the challenge.
    expect(complaints.filter((text) => !text.includes('403'))).toEqual([])
    expect(complaints).toHaveLength(1)
  })

  test('a file that is not the one its integrity names is not run', async () => {
    const { page, script } = await openForeign()
    await page.route(script, async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, body: `${await response.text()}//` })
    })
    await page.reload()
    await expect.poll(() => page.locator('postern-code').count()).toBe(1)
    expect(await page.locator('.postern-field').count()).toBe(0)
  })
})

describe('for everyone', () => {
  test('zh: every sentence, and the language of the message', async () => {
    const page = await open({ lang: 'zh-CN' })
    let asked: Record<string, unknown> = {}
    page.on('request', (request) => {
      if (request.url().endsWith('/v1/captchas')) asked = request.postDataJSON()
    })
    expect(await page.getByRole('textbox', { name: '手机号' }).count()).toBe(1)
    const code = await sendTo(page, newNumber())
    expect(asked.locale).toBe('zh-CN')
    await said(page).toBe('4 位验证码已发出，请注意查收。')
    await partsOf(page).code.fill(wrongFor(code))
    await said(page).toBe('验证码错误，还可再试 2 次。')
    await partsOf(page).code.fill(code)
    await said(page).toBe('验证成功。')
  })

  test('a language that the page writes with underscores, and the same page around a shadow root', async () => {
    const page = await open({ lang: 'zh_Hans_CN' })
    expect(await partsOf(page).send.textContent()).toBe('获取验证码')
    await page.evaluate(`{
      const root = document.querySelector('form').appendChild(document.createElement('div'))
      root.attachShadow({ mode: 'open' }).append(document.querySelector('postern-code'))
    }`)
    expect(await partsOf(page).send.textContent()).toBe('获取验证码')
  })

  test('sentences of the page: by attribute and by property', async () => {
    const page = await open({
      attributes: 'text-send="Code anfordern" text-sms-label="Handynummer"',
    })
    const { send, message } = partsOf(page)
    expect(await send.textContent()).toBe('Code anfordern')
    await page.evaluate(
      `document.querySelector('postern-code').texts = { smsEmpty: 'Erst die Nummer.' }`,
    )
    await send.click()
    expect(await message.textContent()).toBe('Erst die Nummer.')
  })

  test('without JavaScript what the page put into the element is there to read', async () => {
    const page = await open({ context: { javaScriptEnabled: false } })
    expect(await page.locator('noscript').innerText()).toBe('Switch JavaScript on to get a code.')
    expect(await page.locator('noscript').isVisible()).toBe(true)
    const with_ = await open()
    await with_.locator('.postern-field').waitFor()
    expect(await with_.locator('noscript').isVisible()).toBe(false)
  })

  test.each([
    ['320 px, light', 320, 'light'],
    ['1440 px, dark', 1440, 'dark'],
  ] as const)(
    '%s: axe finds nothing in any state, nothing scrolls sideways, nothing moves',
    async (_, width, colorScheme) => {
      const context = {
        viewport: { width, height: 700 },
        colorScheme,
        reducedMotion: 'reduce',
      } as const
      const page = await open({ context, body: '{field}<button>Go</button>' })
      await page.locator('.postern-field').waitFor()
      const heights: number[] = []
      const look = async (state: string) => {
        const found = {
          state,
          axe: await axe(page),
          sideways: await page.evaluate('document.documentElement.scrollWidth > innerWidth'),
        }
        expect(found).toEqual({ state, axe: [], sideways: false })
        heights.push((await page.locator('postern-code').boundingBox())?.height ?? 0)
      }
      await look('address')
      await partsOf(page).send.click()
      await look('empty')
      const code = await sendTo(page, newNumber())
      await look('sent')
      await partsOf(page).code.fill(wrongFor(code))
      await said(page).toContain('wrong')
      await look('wrong')
      await typeRight(page, code)
      await look('passed')
      expect(new Set(heights).size).toBe(1)
    },
  )

  test('right to left: the code stays as it is written, at the side where lines begin', async () => {
    const page = await open({ attributes: 'dir="rtl"' })
    const code = await sendTo(page, newNumber())
    const field = await page.locator('postern-code').boundingBox()
    const places = await page.locator('.postern-digit').all()
    const boxes = await Promise.all(places.map((place) => place.boundingBox()))
    const lefts = boxes.map((box) => box?.x ?? 0)
    expect(lefts).toEqual([...lefts].sort((a, b) => a - b))
    expect(Math.round((lefts.at(-1) ?? 0) + (boxes.at(-1)?.width ?? 0))).toBe(
      Math.round((field?.x ?? 0) + (field?.width ?? 0)),
    )
    await typeRight(page, code)
  })

  test.each([
    ['3 h ahead', 10_800_000],
    ['40 s behind', -40_000],
  ])('a clock that is %s: the countdown is the service’s', async (_, aheadMs) => {
    const page = await open()
    await page.clock.install({ time: Date.now() + aheadMs })
    await page.reload()
    await sendTo(page, newNumber())
    expect(await partsOf(page).again.textContent()).toMatch(/^Send again in (1:0[01]|0:5\d)$/)
  })

  test('a message the browser can read (WebOTP) fills the code in', async () => {
    const page = await open({
      head: `<script>
        window.OTPCredential = class {}
        navigator.credentials.get = ({ signal }) => new Promise((resolve, reject) => {
          window.arrive = (code) => resolve({ code })
          signal.addEventListener('abort', () => reject(signal.reason))
        })
      </script>`,
    })
    const code = await sendTo(page, newNumber())
    await page.evaluate(`arrive('${code}')`)
    await said(page).toBe('Confirmed.')
  })

  test('taken out of the page and put back in: one field, and nothing left behind', async () => {
    const page = await open()
    const code = await sendTo(page, newNumber())
    await page.evaluate(`{
      const field = document.querySelector('postern-code')
      const { parentElement } = field
      field.remove()
      parentElement.append(field)
    }`)
    await eventually(async () => (await page.locator('.postern-field').count()) === 1)
    expect(await page.locator('[name=postern-pass]').count()).toBe(1)
    await typeRight(page, code)
  })

  test.each([
    ['its HTML is written again', 'form.innerHTML = form.innerHTML'],
    ['it is cloned', 'form.replaceWith(form.cloneNode(true))'],
  ])('%s: one field, which still knows the code', async (_, change) => {
    const page = await open()
    const code = await sendTo(page, newNumber())
    await page.evaluate(`{ const form = document.forms[0]; ${change} }`)
    expect(await page.locator('.postern-field').count()).toBe(1)
    await typeRight(page, code)
    const passes = await page.evaluate(`new FormData(document.forms[0]).getAll('postern-pass')`)
    expect(passes).toEqual([expect.stringMatching(/^ey/)])
  })
})
