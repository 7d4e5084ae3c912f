/** Reports of SES by SNS, signed with a chain of this test's own. */
import { execFileSync } from 'node:child_process'
import { createSign } from 'node:crypto'
import { mkdtempSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { ses } from '../../src/providers/ses/index.ts'
import { createSns } from '../../src/providers/ses/sns.ts'
import { listen } from '../tools/listen.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'

const folder = mkdtempSync(join(inject('runFolder'), 'sns-'))
const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
const newKey = (name: string) => [
  '-newkey',
  'rsa:2048',
  '-nodes',
  '-keyout',
  `${name}.key`,
  '-out',
  `${name}.pem`,
]
openssl('req', '-x509', ...newKey('root'), '-days', '2', '-subj', '/CN=A root')
openssl(
  'req',
  '-x509',
  ...newKey('sns'),
  '-days',
  '2',
  '-subj',
  '/CN=sns.amazonaws.com',
  '-CA',
  'root.pem',
  '-CAkey',
  'root.key',
)
openssl('req', '-x509', ...newKey('alien'), '-days', '2', '-subj', '/CN=sns.amazonaws.com')
const read = (name: string) => readFileSync(join(folder, name), 'utf8')

const asked: string[] = []
let isAway = false
const files: Record<string, string> = {
  '/sns.pem': `${read('sns.pem')}${read('root.pem')}`,
  '/no-chain.pem': `${read('sns.pem')}${read('alien.pem')}`,
  '/none.pem': 'nothing',
}
const place = await listen(
  createServer((request, response) => {
    asked.push(request.url ?? '')
    const file =
      files[request.url ?? ''] ?? (request.url?.startsWith('/?Action') ? '<ok/>' : undefined)
    if (isAway || file === undefined) response.statusCode = 503
    response.end(file)
  }),
)
const topic = 'arn:aws:sns:eu-west-1:123456789012:mail'

type Fields = Record<string, string>
/** A message as SNS sends it: the signed fields in the order of their names. */
function signed(fields: Fields, { key = 'sns.key', version = '2' } = {}): string {
  const message: Fields = {
    Type: 'Notification',
    MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
    TopicArn: topic,
    Timestamp: '2026-11-27T12:00:00.000Z',
    ...fields,
  }
  const names = Object.keys(message).toSorted()
  const text = names.map((name) => `${name}\n${message[name]}\n`).join('')
  const Signature = createSign(version === '1' ? 'sha1' : 'sha256')
    .update(text)
    .sign(read(key), 'base64')
  const SigningCertURL = `${place}/sns.pem`
  return JSON.stringify({ ...message, SignatureVersion: version, Signature, SigningCertURL })
}
const bounce = (messageId: string, bounceType = 'Permanent') => ({
  Message: JSON.stringify({
    notificationType: 'Bounce',
    mail: { messageId },
    bounce: {
      bounceType,
      bounceSubType: 'General',
      bouncedRecipients: [{ emailAddress: 'ada@example.test' }],
    },
  }),
})

const entry = {
  ...{ accessKeyId: 'AKID', secretAccessKey: 'secret', region: 'eu-west-1' },
  from: 'Acme <no-reply@acme.test>',
}
function readerOf(more = {}) {
  const reader = ses.createReceiptReader?.(
    ses.settings.parse({ ...entry, endpoint: place, ...more }),
  )
  if (!reader) throw new Error('no reader')
  return async (body: string, receivedAt = Date.now()) => {
    const request = { rawBody: Buffer.from(body), headers: {}, query: {}, receivedAt }
    if ((await reader.fetchProof?.(request)) === false) return 'later'
    const parsed = reader.parse(request)
    if (!parsed.ok) return parsed.reason
    return (await reader.confirm?.(request)) ? parsed.receipts : 'not confirmed'
  }
}
const receipt = { messageId: 'm-1' }

describe('the signature', () => {
  test.each(['1', '2'])('version %s: accepted, also with a subject', async (version) => {
    const read = readerOf()
    const bounced = [{ ...receipt, outcome: 'bounced', detail: 'ses Permanent General' }]
    expect(await read(signed(bounce('m-1'), { version }))).toEqual(bounced)
    expect(await read(signed({ ...bounce('m-1'), Subject: 'Amazon SES' }, { version }))).toEqual(
      bounced,
    )
  })

  test.each([
    ['another key', signed(bounce('m-1'), { key: 'alien.key' })],
    ['a field changed', signed(bounce('m-1')).replace('General', 'NoEmail')],
    [
      'another version',
      signed(bounce('m-1')).replace('"SignatureVersion":"2"', '"SignatureVersion":"1"'),
    ],
    ['a certificate elsewhere', signed(bounce('m-1')).replace('/sns.pem', '.evil.test/sns.pem')],
    ['no message of SNS', JSON.stringify(bounce('m-1'))],
    ['no JSON', 'Type=Notification'],
  ])('%s: forged', async (_, body) => {
    expect(await readerOf()(body)).toBe('forged')
  })

  test.each(['no-chain.pem', 'none.pem', 'missing.pem'])(
    'a certificate that cannot be read (%s): SNS must send again',
    async (name) => {
      expect(await readerOf()(signed(bounce('m-1')).replace('sns.pem', name))).toBe('later')
    },
  )

  test('a certificate that has ended, or not begun: forged', async () => {
    const read = readerOf()
    const day = 86_400_000
    expect(await read(signed(bounce('m-1')), Date.now() + 3 * day)).toBe('forged')
    expect(await read(signed(bounce('m-1')), Date.now() - day)).toBe('forged')
  })

  test('a certificate is read once, and a stranger gets a limited number of look-ups', async () => {
    const read = readerOf()
    const before = asked.length
    await Promise.all([1, 2, 3].map(() => read(signed(bounce('m-1')))))
    expect(asked.length - before).toBe(1)
    const minute = 60_000 * Math.ceil(Date.now() / 60_000)
    for (let nth = 0; nth < 30; nth++)
      await read(signed(bounce('m-1')).replace('sns.pem', `${nth}.pem`), minute)
    expect(asked.length - before).toBe(21)
    expect(await read(signed(bounce('m-1')), minute)).toHaveLength(1)
  })

  test('a certificate that has signed a message stays known, however many others strangers name', async () => {
    const read = readerOf()
    expect(await read(signed(bounce('m-1')))).toHaveLength(1)
    for (let nth = 0; nth < 60; nth++) {
      files[`/more-${nth}.pem`] = files['/sns.pem'] as string
      const forged = signed(bounce('m-1'), { key: 'alien.key' })
      await read(forged.replace('sns.pem', `more-${nth}.pem`), Date.now() + 60_000 * (nth + 1))
    }
    const before = asked.length
    expect(await read(signed(bounce('m-1')))).toHaveLength(1)
    expect(asked.length).toBe(before)
  })

  test('while AWS is away: later, and accepted when it is back', async () => {
    const read = readerOf()
    isAway = true
    expect(await read(signed(bounce('m-1')))).toBe('later')
    isAway = false
    expect(await read(signed(bounce('m-1')), Date.now() + 11_000)).toHaveLength(1)
  })

  test('with topics in the settings: no other topic', async () => {
    expect(await readerOf({ topics: [topic] })(signed(bounce('m-1')))).toHaveLength(1)
    expect(await readerOf({ topics: [`${topic}2`] })(signed(bounce('m-1')))).toBe('forged')
  })
})

test.each([
  ['https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem', true],
  ['https://sns.cn-north-1.amazonaws.com.cn/SimpleNotificationService-1.pem', true],
  ['https://sns.us-gov-west-1.amazonaws.com/SimpleNotificationService-1.pem', true],
  ['http://sns.eu-west-1.amazonaws.com/a.pem', false],
  ['https://sns.eu-west-1.amazonaws.com.evil.test/a.pem', false],
  ['https://evil.test/sns.eu-west-1.amazonaws.com/a.pem', false],
  ['https://evil.test#sns.eu-west-1.amazonaws.com/a.pem', false],
  ['https://sns.eu-west-1.amazonaws.com@evil.test/a.pem', false],
  ['https://sns.eu-west-1.amazonaws.com:8443/a.pem', false],
  ['https://bucket.s3.eu-west-1.amazonaws.com/a.pem', false],
  ['https://sns-eu-west-1.amazonaws.com/a.pem', false],
  ['file:///etc/passwd', false],
  ['', false],
])('%s is a place of SNS: %s', (address, is) => {
  expect(createSns(undefined).isOfSns(address)).toBe(is)
})

test.each([
  [{ notificationType: 'Delivery' }, 'delivered'],
  [{ eventType: 'Delivery' }, 'delivered'],
  [
    {
      notificationType: 'Bounce',
      bounce: { bounceType: 'Transient', bounceSubType: 'MailboxFull' },
    },
    'failed',
  ],
  [{ notificationType: 'Bounce', bounce: { bounceType: 'Undetermined' } }, 'failed'],
  [
    {
      eventType: 'Bounce',
      bounce: { bounceType: 'Permanent', bounceSubType: 'OnAccountSuppressionList' },
    },
    'bounced',
  ],
  [{ notificationType: 'Complaint', complaint: { complaintFeedbackType: 'abuse' } }, 'complained'],
  [{ notificationType: 'Complaint' }, 'complained'],
  [{ notificationType: 'Complaint', complaint: { complaintFeedbackType: 'not-spam' } }, undefined],
  [{ eventType: 'Reject' }, 'failed'],
  [{ eventType: 'Send' }, undefined],
  [{ eventType: 'DeliveryDelay' }, undefined],
])('%j: %s', async (report, outcome) => {
  const Message = JSON.stringify({
    ...report,
    mail: { messageId: 'm-1', tags: { noticeId: ['n-1'] } },
  })
  const receipts = await readerOf({ topics: [topic] })(signed({ Message }))
  expect(receipts).toEqual(
    outcome ? [expect.objectContaining({ messageId: 'm-1', noticeId: 'n-1', outcome })] : [],
  )
})

test('without topics in the settings, a report counts only by its message id: anyone can have a topic, and know a notice id', async () => {
  const Message = JSON.stringify({
    notificationType: 'Complaint',
    mail: { messageId: 'invented', tags: { noticeId: ['n-1'] } },
  })
  const receipts = await readerOf()(signed({ Message }))
  expect(receipts).toEqual([{ messageId: 'invented', outcome: 'complained' }])
})

test.each([
  ['SimpleNotificationService-1.pem', true],
  ['SimpleNotificationService-1.pem?1', false],
  ['SimpleNotificationService-1.pem#1', false],
  ['./SimpleNotificationService-1.pem', false],
  ['/SimpleNotificationService-1.pem', false],
  ['Simple%4eotificationService-1.pem', false],
  ['SimpleNotificationService-1', false],
])('%s is the one spelling of a certificate: %s', (file, is) => {
  expect(createSns(undefined).isCertificate(`https://sns.eu-west-1.amazonaws.com/${file}`)).toBe(is)
})

test.each(['{}', 'text', JSON.stringify({ eventType: 'New', mail: { messageId: 'm-1' } })])(
  'a signed report that is not understood (%s): malformed',
  async (Message) => {
    expect(await readerOf()(signed({ Message }))).toEqual([{ outcome: 'failed' }])
  },
)

test('a subscription is confirmed at an address of SNS alone, and asked for again while that fails', async () => {
  const read = readerOf()
  const confirmation = {
    Type: 'SubscriptionConfirmation',
    Message: 'You have chosen …',
    Token: 't',
  }
  const at = (SubscribeURL: string) => signed({ ...confirmation, SubscribeURL })
  expect(await read(at(`${place}/?Action=ConfirmSubscription&Token=t`))).toEqual([])
  expect(asked.at(-1)).toBe('/?Action=ConfirmSubscription&Token=t')
  expect(await read(at('https://evil.test/?Action=ConfirmSubscription'))).toBe('not confirmed')
  isAway = true
  expect(await read(at(`${place}/?Action=ConfirmSubscription&Token=t`))).toBe('not confirmed')
  isAway = false
  const sentence = 'Successfully validated SNS topic for Amazon SES event publishing.'
  expect(await read(signed({ Message: sentence }))).toEqual([])
})

test('a confirmation that strangers repeat calls SNS a limited number of times', async () => {
  const read = readerOf()
  const SubscribeURL = `${place}/?Action=ConfirmSubscription&Token=r`
  const body = signed({ Type: 'SubscriptionConfirmation', Message: 'm', Token: 'r', SubscribeURL })
  const minute = 60_000 * Math.ceil(Date.now() / 60_000)
  const before = asked.length
  for (let nth = 0; nth < 30; nth++) await read(body, minute)
  expect(asked.length - before).toBe(21)
})

test('through the whole product: a bounce refuses the next mail; a certificate that cannot be read is 503', async () => {
  // SNS is at the address of SES, as in a simulator.
  const simulator = await listen(
    createServer((request, response) => {
      const { url = '', method } = request
      request.resume()
      request.on('end', () =>
        response.end(method === 'GET' ? files[url] : '{"MessageId":"0100-1"}'),
      )
    }),
  )
  const postern = await startPostern({
    policyFile: {
      policies: noLimits,
      providers: { mail: { kind: 'ses', ...entry, endpoint: simulator } },
      routes: { sms: [], email: [{ use: ['mail'] }] },
      browser: { rules: [], checkRules: [] },
    },
  })
  const to = 'ada@example.test'
  const sent = await postern.post('/v1/captchas', { channel: 'email', to })
  const path = `/v1/notices/${sent.body.id}`
  await eventually(async () =>
    expect((await postern.get(path)).body).toMatchObject({ state: 'sent' }),
  )
  const { providerMessageId } = (await postern.get(path)).body
  const report = signed(bounce(providerMessageId)).replace(place, simulator)
  const post = (text: string) => {
    const headers = {
      'content-type': 'text/plain; charset=UTF-8',
      'x-amz-sns-message-type': 'Notification',
    }
    return postern.post('/v1/receipts/mail', text, { key: null, headers })
  }
  expect((await post(report.replace('sns.pem', 'none.pem'))).status).toBe(503)
  expect((await post(report.replace('General', 'NoEmail'))).status).toBe(403)
  expect((await post(report)).status).toBe(200)
  expect((await postern.get(path)).body).toMatchObject({ state: 'failed', error: 'bounced' })
  const again = await postern.post('/v1/captchas', { channel: 'email', to })
  expect(again).toMatchObject({ status: 403, body: { reason: 'bounced' } })
})
