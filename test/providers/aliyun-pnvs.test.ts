import { describe, expect, it } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { resultOfCode } from '../../src/providers/aliyun/errors.ts'
import * as given from './cases/aliyun-pnvs.ts'
import { withProvider } from './conformance.ts'
import { testConformance } from './test-conformance.ts'

const { message } = given.conformance
const never = new AbortController().signal

testConformance(given)

describe('aliyun-pnvs', () => {
  it('sends our code in the template of the service, and leaves the limits to us', async () => {
    await withProvider(given, async (provider, farEnd) => {
      const noticeId = newId()
      const result = await provider.send({ ...message, noticeId }, never)
      expect(result).toEqual({ kind: 'accepted', messageId: `9^${noticeId}` })
      expect(Object.fromEntries(farEnd.requests[0]?.query ?? [])).toEqual({
        PhoneNumber: '13812345678',
        CountryCode: '86',
        SignName: '速通互联验证码',
        TemplateCode: '100001',
        TemplateParam: '{"code":"738291","min":"five"}',
        OutId: noticeId,
        Interval: '1',
      })
      expect(farEnd.complaints).toEqual([])
    })
  })

  it.each(['+85252001234', '+861381234567', '+8621812345678'])(
    'leaves %s to the next provider: the service reaches mobiles of the mainland only',
    async (to) => {
      await withProvider(given, async (provider, farEnd) => {
        const result = await provider.send({ ...message, to, noticeId: newId() }, never)
        expect(result.kind).toBe('rejected')
        expect(farEnd.requests).toEqual([])
      })
    },
  )

  it.each([
    ['biz.FREQUENCY', 'postponed'],
    ['BUSINESS_LIMIT_CONTROL', 'postponed'],
    ['MOBILE_NUMBER_ILLEGAL', 'invalid_recipient'],
    ['INVALID_PARAMETERS', 'rejected'],
    ['FUNCTION_NOT_OPENED', 'unavailable'],
  ])('takes %s for %s', (code, kind) => {
    expect(resultOfCode(code, '')).toMatchObject({ kind })
  })
})
