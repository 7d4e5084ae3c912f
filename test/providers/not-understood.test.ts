import { describe, expect, it } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import * as aliyun from './cases/aliyun.ts'
import * as aliyunPnvs from './cases/aliyun-pnvs.ts'
import * as ses from './cases/ses.ts'
import * as tencent from './cases/tencent.ts'
import * as twilio from './cases/twilio.ts'
import * as vonage from './cases/vonage.ts'
import * as whatsapp from './cases/whatsapp.ts'
import { startHttpFarEnd } from './far-ends/http.ts'

const never = new AbortController().signal
const cases = { aliyun, 'aliyun-pnvs': aliyunPnvs, ses, tencent, twilio, vonage, whatsapp }

describe('an answer that the vendor did not write', () => {
  it.each(Object.entries(cases))(
    '%s: a page of a proxy → surely not accepted, except with a 2xx',
    async (kind, { conformance, default: providerKind }) => {
      let answer = { status: 200, body: '<html>' }
      const farEnd = await startHttpFarEnd(() => answer)
      const provider = providerKind.create(
        kind,
        providerKind.settings.parse(conformance.settings(farEnd.port)) as never,
        { timeoutMs: 20_000, concurrency: 1, clock: Date.now },
      )
      const kindOf = async (status: number, body: string) => {
        answer = { status, body }
        return (await provider.send({ ...conformance.message, noticeId: newId() }, never)).kind
      }
      for (const body of ['', '<html>', 'null', '[]', '{}']) {
        for (const status of [200, 202, 203]) expect(await kindOf(status, body)).toBe('unknown')
        for (const status of [301, 307, 403, 407, 408, 410, 413]) {
          expect([status, body, await kindOf(status, body)]).toEqual([status, body, 'unavailable'])
        }
      }
      expect(await kindOf(520, '')).toBe('unknown')
      expect(await kindOf(522, '')).toBe('unavailable')
      await provider.close()
      await farEnd.close()
    },
  )
})
