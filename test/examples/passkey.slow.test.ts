/** examples/passkey in Chromium, whose virtual authenticator stands for the device of a person. */
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { launchBrowser, openPage } from '../tools/browser.ts'
import { listen } from '../tools/listen.ts'
import { environmentWithNode } from '../tools/node-versions.ts'
import { passFor } from '../tools/pass.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { eventually } from '../tools/wait.ts'
import { installExamples, startServer } from './run-example.ts'

const browser = await launchBrowser()
const folder = join(await installExamples(['passkey']), 'passkey')
const postern = await startPostern({ policyFile: { policies: noLimits } })
const start = (node: number, posternUrl = postern.url) =>
  startServer(
    'server.mjs',
    async (origin) => ({
      ...(await environmentWithNode(node)),
      POSTERN_URL: posternUrl,
      PUBLISHABLE_KEY: await publishableKey(postern.database, { origins: [origin] }),
      SECRET_KEY: postern.key,
    }),
    folder,
  )

/** A person on the page, with a separate device. */
async function openAs(origin: string) {
  const { page, messages } = await openPage(browser, origin)
  const devTools = await page.context().newCDPSession(page)
  await devTools.send('WebAuthn.enable')
  const { authenticatorId } = await devTools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      ...{ protocol: 'ctap2', transport: 'internal', automaticPresenceSimulation: true },
      ...{ hasResidentKey: true, hasUserVerification: true, isUserVerified: true },
    },
  })
  return {
    ...{ page, messages },
    press: (name: string) => page.getByRole('button', { name }).click(),
    status: () => expect.poll(() => page.locator('#message').textContent()),
    passkeys: async () =>
      (await devTools.send('WebAuthn.getCredentials', { authenticatorId })).credentials,
  }
}

/** A program without a device, which keeps cookies. */
function stranger(origin: string) {
  let cookie = ''
  return async (path: string, body: unknown) => {
    const headers = { 'content-type': 'application/json', cookie }
    const answer = await fetch(origin + path, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? cookie
    const { message } = (await answer.json()) as { message?: string }
    return [answer.status, message]
  }
}

const refused = [403, 'Please confirm your number or address again.']
const channel = 'sms'

test('examples/passkey on Node 20: a right code is good for one passkey, which then signs in without a message', async () => {
  const { origin } = await start(20)
  const { page, messages, press, status, passkeys } = await openAs(origin)
  const to = '+8613800138000'
  const bodyOf = async (path: string) => (await page.waitForRequest(origin + path)).postDataJSON()
  const [granted, enrolled] = [bodyOf('/enrol/options'), bodyOf('/enrol')]
  await page.getByLabel('Mobile number').fill(to)
  await press('Send code')
  await page.getByLabel('Code sent to').fill(await postern.codeFor(to))
  await press('Create a passkey')
  await status().toBe(`Welcome, ${to}!`)

  await page.context().clearCookies()
  await page.reload()
  await press('Sign in with a passkey')
  await status().toBe(`Welcome, ${to}!`)
  expect(await passkeys()).toMatchObject([{ rpId: 'localhost' }])
  expect(await postern.messages(to)).toHaveLength(1)
  expect(messages).toEqual([])

  const call = stranger(origin)
  expect(await call('/enrol/options', await granted)).toEqual(refused)
  expect(await call('/enrol', await enrolled)).toEqual(refused)
  for (const path of ['/sign-in', '/enrol']) {
    expect(await call('/sign-in/options', {})).toEqual([200, undefined])
    expect((await call(path, await enrolled))[0]).toBe(403)
  }
})

test('examples/passkey on Node 24: a second right code adds no passkey to an account that has one', async () => {
  const { origin } = await start(24)
  const to = '+8613800138001'
  const [owner, other] = [await openAs(origin), await openAs(origin)]
  for (const { page } of [owner, other]) {
    const detail = { pass: await passFor(postern, to, 'passkey'), channel, to }
    const event = `new CustomEvent('passed', { detail: ${JSON.stringify(detail)} })`
    await page.evaluate(`document.querySelector('postern-code').dispatchEvent(${event})`)
    await page.getByRole('button', { name: 'Create a passkey' }).waitFor()
  }
  await owner.press('Create a passkey')
  await owner.status().toBe(`Welcome, ${to}!`)
  const signInFirst = 'This account has a passkey. Please sign in with it.'
  await other.press('Create a passkey')
  await other.status().toBe(signInFirst)
  await other.press('Sign in with a passkey')
  await other.status().toBe('This passkey is not known here.')
  const call = stranger(origin)
  const pass = await passFor(postern, to, 'passkey')
  expect(await call('/enrol/options', { pass, channel, to })).toEqual([403, signInFirst])

  const ofLogin = await passFor(postern, to, 'login')
  expect(await call('/enrol/options', { pass: ofLogin, channel, to })).toEqual(refused)
  const ofOther = await passFor(postern, '+8613800138002', 'passkey')
  expect(await call('/enrol/options', { pass: ofOther, channel, to })).toEqual(refused)
  expect(await call('/enrol/options', {})).toEqual(refused)
})

test('examples/passkey: five minutes after the code, its grant has ended', async () => {
  let ageMs = 0
  const to = '+8613800138003'
  /** In place of Postern, because only its clock can make a pass old. */
  const clock = createServer((_, response) => {
    const verifiedAt = new Date(Date.now() - ageMs).toISOString()
    response.end(JSON.stringify({ valid: true, scene: 'passkey', channel, to, verifiedAt }))
  })
  const { origin } = await start(24, await listen(clock))
  const call = stranger(origin)
  const grant = () => call('/enrol/options', { pass: 'any', channel, to })
  const notValid = [403, 'This passkey is not valid.']
  ageMs = 300_001
  expect(await grant()).toEqual(refused)
  ageMs = 0
  expect(await grant()).toEqual([200, undefined])
  expect(await call('/enrol', {})).toEqual(notValid)
  expect(await call('/enrol', {})).toEqual(refused)
  ageMs = 299_000
  const endsAtMs = Date.now() + 1_000
  // A busy machine may be too late for the first step already.
  expect([refused, [200, undefined]]).toContainEqual(await grant())
  await eventually(() => Date.now() > endsAtMs + 100)
  expect(await call('/enrol', {})).toEqual(refused)
})
