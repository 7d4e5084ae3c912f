/** People sign up with Supabase Auth and with Zitadel. The calls of their hooks are made here as in their sources. */
import { expect, test } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'
import {
  callAsSupabase,
  callAsZitadel,
  supabaseMail,
  supabaseSms,
  zitadelMessage,
} from './identity-products.ts'

const secretOf = (letter: string) => `v1,whsec_${Buffer.alloc(32, letter).toString('base64')}`
const secrets = `${secretOf('a')}|${secretOf('b')}`
const keys = ['an old key of Zitadel', 'a new key of Zitadel'] as const
const postern = await startPostern({
  policyFile: {
    policies: {
      ...noLimits,
      captcha: [{ name: 'recipient', key: '{channel}:{to}', sliding: '2 per 1h' }],
    },
    compat: {
      hooks: {
        supabase: { kind: 'supabase', secret: secrets, app: 'web', scene: 'signup' },
        zitadel: { kind: 'zitadel', secret: keys[1], app: 'web', scene: 'login' },
      },
    },
  },
})
const hookUrls = {
  supabase: `${postern.url}/v1/hooks/supabase`,
  zitadel: `${postern.url}/v1/hooks/zitadel`,
}
const supabase = (input: object, given = secrets) => callAsSupabase(hookUrls.supabase, given, input)
const zitadel = (input: object, given: readonly string[] = keys, signedAtMs = Date.now()) =>
  callAsZitadel(hookUrls.zitadel, given, input, signedAtMs)

let people = 0
const newPhone = () => `86138006${String(++people).padStart(5, '0')}`
const newMail = () => `person${++people}@example.com`

async function textsTo(to: string, count = 1): Promise<string[]> {
  await eventually(async () => expect(await postern.messages(to)).toHaveLength(count))
  return (await postern.messages(to)).map(({ text }) => text)
}

test('Supabase: sign-up by phone and by mail, and a change of the address', async () => {
  const [phone, mail, changed] = [newPhone(), newMail(), newMail()]
  await supabase(supabaseSms(phone, '561166'))
  expect((await textsTo(`+${phone}`))[0]).toContain('561166')
  await supabase(supabaseMail(mail, '305805'))
  expect((await textsTo(mail))[0]).toContain('305805')
  await supabase(supabaseMail(mail, '111111', { newEmail: changed, tokenNew: '222222' }))
  expect((await textsTo(mail, 2))[0]).toContain('111111')
  expect((await textsTo(changed))[0]).toContain('222222')
})

test('Supabase: a refusal has its status and text; a wrong secret is a fault of the hook', async () => {
  const phone = newPhone()
  for (const otp of ['561166', '561167']) await supabase(supabaseSms(phone, otp))
  await expect(supabase(supabaseSms(phone, '561168'))).rejects.toMatchObject({
    status: 429,
    message: expect.stringMatching(/\d+ (seconds|minutes)\.$/),
  })
  await expect(supabase(supabaseSms(newPhone(), '561166'), secretOf('c'))).rejects.toThrow(
    'the hook answered 401',
  )
})

test('Supabase: the answer is lost with its connection, and the call is repeated → one message', async () => {
  const proxy = await startTcpProxy(Number(new URL(postern.url).port))
  const phone = newPhone()
  proxy.dropAnswers()
  const called = callAsSupabase(
    proxy.through(hookUrls.supabase),
    secrets,
    supabaseSms(phone, '561166'),
  )
  await textsTo(`+${phone}`)
  proxy.forward()
  proxy.reset()
  await called
  await textsTo(`+${phone}`)
})

test('Zitadel: verification by phone and by mail, and a second factor; one of two keys is enough', async () => {
  const [phone, other, mail] = [`+${newPhone()}`, `+${newPhone()}`, newMail()]
  await zitadel(zitadelMessage(phone, '0M53RF'))
  expect((await textsTo(phone))[0]).toContain('0M53RF')
  await zitadel(zitadelMessage(other, '12345678', true))
  expect((await textsTo(other))[0]).toContain('12345678')
  await zitadel(zitadelMessage(mail, 'A1B2C3'), [keys[1]])
  expect((await textsTo(mail))[0]).toContain('A1B2C3')
})

test('Zitadel: its queue repeats a call, signed a second later → one message; refusals and wrong keys are errors', async () => {
  const phone = `+${newPhone()}`
  const message = zitadelMessage(phone, '0M53RF')
  await zitadel(message, keys, Date.now() - 1_000)
  await zitadel(message)
  await textsTo(phone)
  await zitadel(zitadelMessage(phone, 'X1Y2Z3'))
  await expect(zitadel(zitadelMessage(phone, 'Q4R5S6'))).rejects.toMatchObject({ status: 429 })
  await expect(zitadel(message, [keys[0]])).rejects.toMatchObject({ status: 401 })
})
