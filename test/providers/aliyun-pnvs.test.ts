import { describe, expect, it } from 'vitest'
import { resultOfCode } from '../../src/providers/aliyun/errors.ts'
import * as given from './cases/aliyun-pnvs.ts'
import { rejectedUnsent, testVendor } from './vendor.ts'

const { send } = testVendor(given)

describe('aliyun-pnvs', () => {
  it('sends our code in the template of the service, and leaves the limits to us', async () => {
    const { result, requests, complaints } = await send()
    expect(result).toEqual({ kind: 'accepted', messageId: '9^n-1' })
    expect(Object.fromEntries(requests[0]?.query ?? [])).toEqual({
      PhoneNumber: '13812345678',
      CountryCode: '86',
      SignName: '速通互联验证码',
      TemplateCode: '100001',
      TemplateParam: '{"code":"738291","min":"five"}',
      OutId: 'n-1',
      Interval: '1',
    })
    expect(complaints).toEqual([])
  })

  it.each(['+85252001234', '+861381234567', '+8621812345678'])(
    'leaves %s to the next provider: the service reaches mobiles of the mainland only',
    async (to) => expect(await send({ to })).toMatchObject(rejectedUnsent),
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
