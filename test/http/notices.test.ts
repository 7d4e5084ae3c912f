import { describe, expect, inject, test } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'
import { openApiAnswers } from './openapi-answers.ts'

const postern = await startPostern({
  policyFile: {
    policies: noLimits,
    providers: {
      sandbox: {
        kind: 'sandbox',
        faults: [
          { to: '+8613100131000', result: 'invalid_recipient' },
          { to: '+8613200132000', result: 'rejected' },
        ],
      },
    },
  },
})
const { expectPromised } = await openApiAnswers(postern)

const send = async (to: string, more: Record<string, unknown> = {}) => {
  const body = { channel: 'sms', to, template: 'welcome', params: { name: 'Ada' }, ...more }
  const reply = await postern.post('/v1/notices', body)
  expectPromised('post /v1/notices', reply)
  return reply
}
const search = async (body: Record<string, unknown>) => {
  const reply = await postern.post('/v1/notices/search', body)
  expectPromised('post /v1/notices/search', reply)
  return reply.body
}
const final = (id: string) =>
  eventually(async () => {
    const reply = await postern.get(`/v1/notices/${id}`)
    expectPromised('get /v1/notices/{id}', reply)
    return !['pending', 'sending'].includes(reply.body.state) && reply.body
  })

describe('POST /v1/notices', () => {
  test('202 with what the contract names, Location, and the message as rendered', async () => {
    const { status, headers, body } = await send('+8613800138000', { locale: 'zh', ttl: '1h' })
    expect(status).toBe(202)
    expect(body).toEqual({
      id: expect.any(String),
      channel: 'sms',
      to: '+8613****8000',
      template: 'welcome',
      state: 'pending',
      expiresAt: expect.any(String),
      resendAt: expect.any(String),
    })
    const order = 'id channel to template state expiresAt resendAt'
    expect(Object.keys(body).join(' '), 'as the documentation shows it').toBe(order)
    expect(headers.get('location')).toBe(`${inject('mountAt')}/v1/notices/${body.id}`)
    expect(Math.abs(Date.parse(body.expiresAt) - Date.now() - 3_600_000)).toBeLessThan(5_000)
    expect((await postern.messageFor(body.id)).text).toBe('Ada，欢迎加入！您的账号已开通。')
  })

  test('without ttl it lives for the policy file’s time', async () => {
    const { body } = await send('+8613800138000')
    expect(Math.abs(Date.parse(body.expiresAt) - Date.now() - 86_400_000)).toBeLessThan(5_000)
  })

  test('a template that is made for one channel is refused on the other', async () => {
    const reply = await send('+8613800138000', { template: 'nothing' })
    expect(reply).toMatchObject({ status: 400, body: { errors: [{ path: 'template' }] } })
  })
})

describe('GET /v1/notices/{id}', () => {
  test('sent: provider, its message id, the try and its times', async () => {
    const { body } = await send('+8613900139000')
    const notice = await final(body.id)
    expect(notice).toEqual({
      id: body.id,
      channel: 'sms',
      to: '+8613****9000',
      kind: 'notice',
      template: 'welcome',
      state: 'sent',
      provider: 'sandbox',
      providerMessageId: expect.any(String),
      attempts: [
        {
          provider: 'sandbox',
          at: expect.any(String),
          outcome: 'accepted',
          durationMs: expect.toSatisfy(Number.isInteger),
        },
      ],
      createdAt: expect.any(String),
      expiresAt: body.expiresAt,
      sentAt: expect.any(String),
      finishedAt: expect.any(String),
    })
    expect(Date.parse(notice.sentAt)).toBeGreaterThanOrEqual(Date.parse(notice.createdAt) - 1_000)
  })

  test.each([
    ['+8613100131000', 'invalid_recipient'],
    ['+8613200132000', 'rejected'],
  ])('refused by the provider (%s): failed with the reason, no sending time', async (to, error) => {
    const { body } = await send(to)
    const notice = await final(body.id)
    expect(notice).toMatchObject({ state: 'failed', error, attempts: [{ outcome: error }] })
    expect(notice).not.toHaveProperty('sentAt')
  })

  test('a recipient erased by retention is null', async () => {
    const { body } = await send('+8613900139000')
    await final(body.id)
    await postern.database.pool.query('UPDATE notice SET recipient = NULL WHERE id = $1', [body.id])
    expect((await final(body.id)).to).toBe(null)
  })
})

describe('POST /v1/notices/search', () => {
  test('pages newest first without gaps or repeats while new ones arrive, and ends', async () => {
    const to = '+8615000150000'
    const ids: string[] = []
    for (let count = 0; count < 7; count += 1) ids.unshift((await send(to)).body.id)
    const found: string[] = []
    let cursor: string | undefined
    do {
      const page = await search({ channel: 'sms', to, limit: 3, ...(cursor ? { cursor } : {}) })
      found.push(...page.items.map((item: { id: string }) => item.id))
      cursor = page.nextCursor
      await send(to)
    } while (cursor)
    expect([...found].sort()).toEqual([...ids].sort())
    expect(found.length).toBe(7)
  })

  test('filters: recipient, channel, state; each answer masks its recipient', async () => {
    const to = '+8615100151000'
    const [bySms] = [await send(to)]
    const byEmail = await send('eve@example.com', { channel: 'email' })
    await final(bySms.body.id)
    await final(byEmail.body.id)
    expect((await search({ channel: 'sms', to })).items).toMatchObject([{ id: bySms.body.id }])
    const mails = await search({ channel: 'email', state: 'sent' })
    expect(mails.items.map(({ id }: { id: string }) => id)).toContain(byEmail.body.id)
    expect(mails.items.every((item: { channel: string }) => item.channel === 'email')).toBe(true)
    expect((await search({ channel: 'sms', to, state: 'failed' })).items).toEqual([])
    expect((await search({ channel: 'email', to: 'eve@example.com' })).items[0].to).toBe(
      'e***@example.com',
    )
    expect(JSON.stringify(await search({ limit: 100 }))).not.toContain('15100151000')
  })
})
