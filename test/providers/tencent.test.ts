import { describe, expect, it } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { signTc3 } from '../../src/providers/signatures.ts'
import { resultOfCode } from '../../src/providers/tencent/errors.ts'
import * as given from './cases/tencent.ts'
import { forged, malformed, never, rejectedUnsent, testVendor } from './vendor.ts'

const { message, read, send, withVendor } = testVendor(given)

describe('tencent', () => {
  it('signs as the example of the documentation, masked key and all', () => {
    const stars = '*'.repeat(32)
    const authorization = signTc3(
      {
        service: 'cvm',
        headers: {
          'content-type': 'application/json; charset=utf-8',
          host: 'cvm.tencentcloudapi.com',
          'x-tc-action': 'describeinstances',
        },
        body: '{"Limit": 1, "Filters": [{"Values": ["\\u672a\\u547d\\u540d"], "Name": "instance-name"}]}',
        atMs: 1_551_113_065_000,
      },
      { secretId: `AKID${stars}`, secretKey: stars },
    )
    expect(authorization).toBe(
      `TC3-HMAC-SHA256 Credential=AKID${stars}/2019-02-25/cvm/tc3_request, ` +
        'SignedHeaders=content-type;host;x-tc-action, ' +
        'Signature=10b1a37a7301a02ca19a647ad722d5e43b4b3cff309d421d85b46093f6ab6c4f',
    )
  })

  it('maps template and variables to theirs, in their order', async () => {
    const { requests, complaints } = await send()
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({
      PhoneNumberSet: ['+8618501234444'],
      SmsSdkAppId: '1400006666',
      SignName: '腾讯云测试',
      TemplateId: '1110',
      TemplateParamSet: ['738291', '05分'],
      SessionContext: 'n-1',
    })
    expect(complaints).toEqual([])
  })

  it('rejects a template that has no id', async () => {
    expect(await send({ template: 'x' })).toMatchObject(rejectedUnsent)
  })

  it('finds a lost message again, and draws no conclusion from a missing one (F18)', () =>
    withVendor(async (provider, farEnd) => {
      await farEnd.behave('lose_answer')
      const sent = { noticeId: 'n-1', to: message.to, sentAt: Date.now() }
      expect((await provider.send(message, never)).kind).toBe('unknown')
      await farEnd.behave('accept')
      const found = { kind: 'accepted', messageId: '5000:n-1' }
      expect(await provider.query?.(sent, never)).toEqual(found)
      // Tencent still accepts a call whose clock is four minutes fast.
      const fast = { ...sent, sentAt: Date.now() + 240_000 }
      expect(await provider.query?.(fast, never)).toEqual(found)
      const other = { ...sent, noticeId: newId(), sentAt: 0 }
      expect((await provider.query?.(other, never))?.kind).toBe('unknown')
    }))

  it.each([
    ['LimitExceeded.PhoneNumberThirtySecondLimit', 'postponed', 30_000],
    ['LimitExceeded.PhoneNumberOneHourLimit', 'postponed', 3_600_000],
    ['LimitExceeded.PhoneNumberDailyLimit', 'postponed', 86_400_000],
    ['LimitExceeded.AppCountryOrRegionDailyLimit', 'postponed', 3_600_000],
    ['LimitExceeded.AppGlobalDailyLimit', 'postponed', 3_600_000],
    ['LimitExceeded.AppMainlandChinaDailyLimit', 'postponed', 3_600_000],
    ['LimitExceeded.AppDailyLimit', 'throttled', 3_600_000],
    ['RequestLimitExceeded', 'throttled', 1_000],
    ['FailedOperation.PhoneNumberInBlacklist', 'invalid_recipient'],
    ['FailedOperation.ContainSensitiveWord', 'rejected'],
    ['InvalidParameterValue.TemplateParameterFormatError', 'rejected'],
    ['UnsupportedOperation.UnsuportedRegion', 'rejected'],
    ['UnauthorizedOperation.SerivceSuspendDueToArrears', 'unavailable'],
    ['AuthFailure.SignatureExpire', 'unavailable'],
    ['InternalError.OtherError', 'unavailable'],
    ['InternalError.Timeout', 'unknown'],
    ['constructor', 'unavailable'],
    ['FailedOperation.MarketingSendTimeConstraint', 'postponed', 3_600_000],
  ])('takes %s for %s', (code, kind, retryAfterMs?: number) => {
    const expected = { kind, ...(retryAfterMs ? { retryAfterMs } : {}) }
    expect(resultOfCode(code)).toMatchObject(expected)
    if (kind === 'throttled') expect(resultOfCode(code)).toHaveProperty('retryAfterMs')
  })

  describe('receipts', () => {
    const report = {
      user_receive_time: '2026-11-01 08:03:04',
      nationcode: '86',
      mobile: '18501234444',
      report_status: 'SUCCESS',
      errmsg: 'DELIVRD',
      description: '用户短信送达成功',
      sid: '5000:1',
    }
    const parse = (body: unknown, token: unknown = given.entry.receiptToken) =>
      read(body, { query: { token } })

    it('reads every report of a push and answers result 0', () => {
      const parsed = parse([report, { ...report, report_status: 'FAIL', errmsg: 'MK:0004' }])
      const at = Date.parse('2026-11-01T00:03:04Z')
      expect(parsed).toEqual({
        ok: true,
        receipts: [
          { messageId: '5000:1', outcome: 'delivered', at, detail: 'DELIVRD' },
          { messageId: '5000:1', outcome: 'failed', at, detail: 'MK:0004' },
        ],
        reply: { status: 200, contentType: 'application/json', body: '{"result":0,"errmsg":"OK"}' },
      })
    })

    it('refuses a wrong token (I12)', () => {
      expect(parse([report], 'wrong')).toEqual(forged)
      expect(parse([report], null)).toEqual(forged)
    })

    it.each([{}, [1], [{ ...report, sid: '' }], [{ ...report, report_status: 'MAYBE' }]])(
      'calls %j malformed',
      (body) => expect(parse(body)).toEqual(malformed),
    )
  })
})
