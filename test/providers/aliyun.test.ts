import { describe, expect, it, vi } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { resultOfCode } from '../../src/providers/aliyun/errors.ts'
import { signAcs3 } from '../../src/providers/signatures.ts'
import * as given from './cases/aliyun.ts'
import { forged, malformed, never, rejectedUnsent, testVendor } from './vendor.ts'

const { receiptToken } = given.entry
const { message, read, send, withVendor } = testVendor(given)

describe('aliyun', () => {
  it('signs as the example of the documentation', () => {
    const { headers } = signAcs3(
      {
        host: 'ecs.cn-shanghai.aliyuncs.com',
        query: {
          RegionId: 'cn-shanghai',
          ImageId: 'win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd',
        },
        action: 'RunInstances',
        version: '2014-05-26',
        nonce: '3156853299f313e23d1673dc12e1703d',
        atMs: Date.parse('2023-10-26T10:22:32Z'),
      },
      { accessKeyId: 'YourAccessKeyId', accessKeySecret: 'YourAccessKeySecret' },
    )
    expect(headers.authorization).toContain(
      'Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0',
    )
  })

  it('maps template, variables, sign name and number to theirs', async () => {
    const { requests, complaints } = await send()
    expect(Object.fromEntries(requests[0]?.query ?? [])).toEqual({
      PhoneNumbers: '13812345678',
      SignName: '阿里云测试',
      TemplateCode: 'SMS_1',
      TemplateParam: '{"number":"738291"}',
      OutId: 'n-1',
    })
    const variables = { brand: "5!'()*~ &=", name: 'Acme' }
    const other = await send({ to: '+85252001234', locale: 'en', variables })
    expect(Object.fromEntries(other.requests[0]?.query ?? [])).toMatchObject({
      PhoneNumbers: '85252001234',
      TemplateCode: 'SMS_2',
      TemplateParam: JSON.stringify(variables),
    })
    expect([...complaints, ...other.complaints]).toEqual([])
  })

  it('sends a code alone to a template without a list of variables', async () => {
    const variables = { code: '7382', minutes: '5', validity: '5 分钟', brand: 'Acme' }
    const { requests } = await send({ locale: 'en', variables })
    expect(requests[0]?.query.get('TemplateParam')).toBe('{"code":"7382"}')
  })

  it('query of a number that Aliyun would misread → asks nothing, and was never sent', () =>
    withVendor(async (provider, farEnd) => {
      const sent = { noticeId: 'n-1', to: '+12025550123', sentAt: Date.now() }
      expect((await provider.query?.(sent, never))?.kind).toBe('unavailable')
      expect(farEnd.requests).toEqual([])
    }))

  it.each(['order', 'constructor', '__proto__'])(
    'rejects template %s, which has no id',
    async (template) => expect(await send({ template })).toMatchObject(rejectedUnsent),
  )

  it('finds a lost message again by its records, and waits before calling it not taken (F18)', () =>
    withVendor(async (provider, farEnd) => {
      await farEnd.behave('lose_answer')
      const sent = { noticeId: 'n-1', to: message.to, sentAt: Date.now() }
      expect((await provider.send(message, never)).kind).toBe('unknown')
      await farEnd.behave('accept')
      expect(await provider.query?.(sent, never)).toEqual({ kind: 'accepted' })
      const other = { ...sent, noticeId: newId() }
      expect((await provider.query?.(other, never))?.kind).toBe('unknown')
      const old = { ...other, sentAt: Date.now() - 61_000 }
      expect((await provider.query?.(old, never))?.kind).toBe('unavailable')
      await farEnd.behave('hang')
      expect((await provider.query?.(sent, AbortSignal.timeout(50)))?.kind).toBe('unknown')
      expect((await provider.query?.(old, AbortSignal.timeout(50)))?.kind).toBe('unknown')
    }))

  it.each([
    ['23:59:58 on the 1st', '2026-11-01T15:59:58Z', '2026-11-02 00:00:01'],
    ['00:04:00 on the 2nd, by a fast clock', '2026-11-01T16:04:00Z', '2026-11-01 23:59:59'],
  ])('finds a message sent at %s in Beijing under the other day', (_, sentAt, SendDate) =>
    withVendor(async (provider, farEnd) => {
      await provider.send(message, never)
      Object.assign(farEnd.records[0] as object, { SendDate })
      const sent = { noticeId: 'n-1', to: message.to, sentAt: Date.parse(sentAt) }
      expect(await provider.query?.(sent, never)).toEqual({ kind: 'accepted' })
      const other = await provider.query?.({ ...sent, noticeId: newId() }, never)
      expect(other?.kind).toBe('unavailable')
    }),
  )

  it('asks for one day, except near midnight in Beijing', () =>
    withVendor(async (provider, farEnd) => {
      const daysOf = async (sentAt: string) => {
        const before = farEnd.requests.length
        const sent = { noticeId: newId(), to: message.to, sentAt: Date.parse(sentAt) }
        await provider.query?.(sent, never)
        return farEnd.requests.slice(before).map(({ query }) => query.get('SendDate'))
      }
      expect(await daysOf('2026-11-01T15:44:00Z')).toEqual(['20261101'])
      expect((await daysOf('2026-11-01T15:46:00Z')).sort()).toEqual(['20261101', '20261102'])
      expect((await daysOf('2026-11-01T16:14:00Z')).sort()).toEqual(['20261101', '20261102'])
      expect(await daysOf('2026-11-01T16:16:00Z')).toEqual(['20261102'])
    }))

  it('finds a message among more records of the day than one page has', () =>
    withVendor(async (provider, farEnd) => {
      const sent = { noticeId: 'n-1', to: message.to, sentAt: Date.now() - 61_000 }
      await provider.send(message, never)
      const [record] = farEnd.records
      const others = Array.from({ length: 99 }, () => ({ ...(record as object), OutId: 'other' }))
      farEnd.records.unshift(...(others as typeof farEnd.records))
      expect(await provider.query?.(sent, never)).toEqual({ kind: 'accepted' })
      const missing = { ...sent, noticeId: newId() }
      expect((await provider.query?.(missing, never))?.kind).toBe('unavailable')
    }))

  it('does not ask for a day before it begins at Aliyun, which can be before it begins here', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-11-01T15:50:00Z') })
    return withVendor(async (provider, farEnd) => {
      const sent = { noticeId: 'n-1', to: message.to, sentAt: Date.now() - 61_000 }
      expect((await provider.query?.(sent, never))?.kind).toBe('unavailable')
      farEnd.clock.fastMs = 660_000
      await provider.send(message, never)
      expect(await provider.query?.(sent, never)).toEqual({ kind: 'accepted' })
    })
  })

  it.each([
    ['isv.BUSINESS_LIMIT_CONTROL', '触发分钟级流控Permits:1', 'postponed', 60_000],
    ['isv.BUSINESS_LIMIT_CONTROL', '触发小时级流控Permits:5', 'postponed', 3_600_000],
    ['isv.BUSINESS_LIMIT_CONTROL', '触发天级流控Permits:10', 'postponed', 86_400_000],
    ['isv.DAY_LIMIT_CONTROL', '', 'throttled', 3_600_000],
    ['Throttling.User', '', 'throttled', 1_000],
    ['isv.MOBILE_NUMBER_ILLEGAL', '', 'invalid_recipient'],
    ['isv.SMS_CONTENT_ILLEGAL', '', 'rejected'],
    ['isv.TEMPLATE_MISSING_PARAMETERS', '', 'rejected'],
    ['isv.AMOUNT_NOT_ENOUGH', '', 'unavailable'],
    ['isv.SECURITY_FROZEN_ACCOUNT', '', 'unavailable'],
    ['isv.CUSTOMER_REFUSED', '', 'invalid_recipient'],
    ['isp.RAM_PERMISSION_DENY', '', 'unavailable'],
    ['isp.SYSTEM_ERROR', '', 'unavailable'],
    ['SignatureDoesNotMatch', '', 'unavailable'],
  ])('takes %s %s for %s', (code, sentence, kind, retryAfterMs?: number) => {
    expect(resultOfCode(code, sentence)).toMatchObject({
      kind,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    })
  })

  describe('receipts', () => {
    const report = {
      phone_number: '13812345678',
      send_time: '2026-11-01 08:00:00',
      report_time: '2026-11-01 08:00:03',
      success: true,
      err_code: 'DELIVERED',
      err_msg: '用户接收成功',
      sms_size: '1',
      biz_id: '12345^0',
      out_id: 'n-1',
    }
    const parse = (body: unknown, token: unknown = receiptToken) => read(body, { query: { token } })

    it('reads every report of a push and answers code 0', () => {
      const parsed = parse([report, { ...report, success: false, err_code: 'MK:0001', out_id: '' }])
      const read = { messageId: '12345^0', at: Date.parse('2026-11-01T00:00:03Z') }
      expect(parsed).toEqual({
        ok: true,
        receipts: [
          { ...read, noticeId: 'n-1', outcome: 'delivered', detail: 'DELIVERED' },
          { ...read, outcome: 'failed', detail: 'MK:0001' },
        ],
        reply: { status: 200, contentType: 'application/json', body: '{"code":0,"msg":"OK"}' },
      })
      expect(JSON.stringify(parsed)).not.toContain('13812345678')
    })

    it('refuses a wrong, missing or doubled token (I12)', () => {
      for (const token of ['wrong', null, '', [receiptToken]]) {
        expect(parse([report], token)).toEqual(forged)
      }
    })

    it('refuses every receipt where no token is set', () => {
      const request = { query: { token: '' }, settings: { receiptToken: undefined } }
      expect(read('[]', request)).toEqual(forged)
    })

    it.each(['', '{}', '[1]', '[{"success":"yes"}]', '[{"success":true}]', '[null]'])(
      'calls %j malformed',
      (body) => expect(parse(body)).toEqual(malformed),
    )
  })
})
