import PostalMime from 'postal-mime'
import { describe, expect, it } from 'vitest'
import { resultOfError } from '../../src/providers/ses/index.ts'
import { signAws4 } from '../../src/providers/signatures.ts'
import * as given from './cases/ses.ts'
import { testVendor } from './vendor.ts'

const { message, send } = testVendor(given)

describe('ses', () => {
  it('signs as the test suite of AWS does (post-vanilla)', () => {
    const call = {
      service: 'service',
      path: '/',
      headers: { host: 'example.amazonaws.com' },
      body: '',
      atMs: Date.parse('2015-08-30T12:36:00Z'),
    }
    const key = {
      region: 'us-east-1',
      accessKeyId: 'AKIDEXAMPLE',
      secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
    }
    expect(signAws4(call, key).authorization).toBe(
      'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, ' +
        'Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
    )
  })

  it('hands over the whole mail, with the notice id as a tag', async () => {
    const listUnsubscribe = 'https://acme.test/u'
    const { mails, complaints } = await send({ listUnsubscribe })
    const mail = await PostalMime.parse(mails[0] ?? '')
    expect(mail).toMatchObject({
      from: { name: 'Acme', address: 'no-reply@acme.test' },
      to: [{ address: message.to }],
      subject: message.subject,
    })
    expect(mail.text?.trim()).toBe(message.text)
    expect(mail.html?.trim()).toBe(message.html)
    const headers = new Map(mail.headers.map(({ key, value }) => [key, value]))
    expect(headers.get('auto-submitted')).toBe('auto-generated')
    expect(headers.get('list-unsubscribe')).toBe('<https://acme.test/u>')
    expect(complaints).toEqual([])
  })

  it.each(['a@example.test, b@example.test', 'Ada <ada@example.test>', ''])(
    'sends nothing to %j',
    async (to) => {
      const unsent = { result: { kind: 'invalid_recipient' }, requests: [] }
      expect(await send({ to })).toMatchObject(unsent)
    },
  )

  it.each([
    ['TooManyRequestsException', 429, 'throttled'],
    ['LimitExceededException', 400, 'throttled'],
    ['ThrottlingException', 400, 'throttled'],
    ['MessageRejected', 400, 'rejected'],
    ['BadRequestException:http://internal.amazon.com/', 400, 'rejected'],
    ['MailFromDomainNotVerifiedException', 400, 'unavailable'],
    ['AccountSuspendedException', 400, 'unavailable'],
    ['NotFoundException', 404, 'unavailable'],
    [undefined, 403, 'unavailable'],
    [['x'], 400, 'unavailable'],
  ])('takes %s in HTTP %s for %s', (type, status, kind) => {
    expect(resultOfError(type, status)).toMatchObject({ kind })
  })
})
