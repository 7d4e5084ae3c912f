/** Two vendors of the kind `http`, with senders and texts by country: from the request to the receipt. */
import { expect, test } from 'vitest'
import { json, startHttpFarEnd } from '../providers/far-ends/http.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { releaseLater } from '../tools/release.ts'
import { templatesFolder } from '../tools/templates-folder.ts'
import { eventually } from '../tools/wait.ts'

const token = 'a-token-of-length'
const templates = templatesFolder({
  'captcha/sms.en.txt': 'Code {{code}}',
  'captcha/sms.en.GB.txt': 'GB code {{code}}',
})

async function startVendor(prefix: string) {
  let count = 0
  const farEnd = await startHttpFarEnd(() =>
    json(202, { code: 0, data: [{ id: `${prefix}${++count}` }] }),
  )
  releaseLater(() => farEnd.close())
  const texts = () => farEnd.requests.map(({ body }) => JSON.parse(body))
  const settings = (from: unknown) => ({
    kind: 'http',
    url: `http://127.0.0.1:${farEnd.port}/send`,
    json: { to: '{{toNational}}', text: '{{text}}', sender: '{{from}}', in: '{{country}}' },
    from,
    accepted: { status: 202, where: { '/code': '0' }, id: '/data/0/id' },
    receipts: { token, id: '/id', state: '/state', delivered: 1, failed: 2 },
  })
  return { texts, settings }
}

test('a code goes by the provider that serves its country, with the sender and the text for it; a country that none serves is 403', async () => {
  const [first, second] = [await startVendor('a-'), await startVendor('b-')]
  const postern = await startPostern({
    policyFile: {
      templates,
      policies: noLimits,
      recipients: { allow: ['+447700900'] },
      providers: {
        first: first.settings({ GB: 'AcmeGB', DE: 'AcmeDE' }),
        second: second.settings({ default: 'Acme', FR: false }),
      },
      routes: { sms: [{ use: ['first', 'second'] }], email: [] },
    },
  })
  const send = (to: string) => postern.post('/v1/captchas', { channel: 'sms', to })
  const { body: accepted } = await send('+447700900123')
  await send('+6591234567')
  expect(await send('+33612345678')).toMatchObject({
    status: 403,
    body: { code: 'destination_not_allowed', reason: 'country' },
  })
  await eventually(() => expect([first.texts().length, second.texts().length]).toEqual([1, 1]))
  const text = expect.stringMatching(/^GB code \d+$/)
  expect(first.texts()).toEqual([{ to: '7700900123', text, sender: 'AcmeGB', in: 'GB' }])
  expect(second.texts()).toMatchObject([
    { to: '91234567', text: expect.stringMatching(/^Code \d+$/), sender: 'Acme', in: 'SG' },
  ])

  const { status } = await postern.get('/v1/receipts/first?token=wrong-token-of-length&id=a-1')
  expect(status).toBe(403)
  const receipt = { id: 'a-1', state: 1 }
  const bearer = { key: token }
  expect((await postern.post('/v1/receipts/first', receipt, bearer)).status).toBe(200)
  await eventually(async () => {
    const notice = await postern.get(`/v1/notices/${accepted.id}`)
    expect(notice.body).toMatchObject({ state: 'delivered', provider: 'first' })
  })
})
