/** Every kind that calls over HTTP, by its name. They share `src/base/http-client.ts`, whose own test has the reasons. */
import { describe, expect, it } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { brokenHttp, http, startMisbehavingServer } from '../tools/misbehaving-server.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import * as aliyun from './cases/aliyun.ts'
import * as aliyunPnvs from './cases/aliyun-pnvs.ts'
import * as httpKind from './cases/http.ts'
import * as ses from './cases/ses.ts'
import * as telegram from './cases/telegram.ts'
import * as tencent from './cases/tencent.ts'
import * as twilio from './cases/twilio.ts'
import * as vonage from './cases/vonage.ts'
import * as webhook from './cases/webhook.ts'
import * as whatsapp from './cases/whatsapp.ts'
import type { ConformanceCase } from './conformance.ts'

const cases: readonly ConformanceCase[] = [
  aliyun,
  aliyunPnvs,
  httpKind,
  ses,
  telegram,
  tencent,
  twilio,
  vonage,
  webhook,
  whatsapp,
]

/** Its first call only asks whether the number can get a message, so nothing was handed over. */
const outcomeOf = (given: ConformanceCase) => (given === telegram ? 'unavailable' : 'unknown')

async function sendTo(
  { default: kind, conformance }: ConformanceCase,
  [, misbehaviour, protocol]: (typeof brokenHttp)[number],
  timeoutMs: number,
) {
  const server = await startMisbehavingServer(protocol, misbehaviour)
  const settings = kind.settings.parse(conformance.settings(server.port))
  const provider = kind.create('far', settings, { timeoutMs, concurrency: 10, clock: Date.now })
  releaseLater(() => provider.close())
  const message = { ...conformance.message, noticeId: newId() }
  return { server, result: await provider.send(message, new AbortController().signal) }
}

describe.each(cases.map((one) => [one.default.kind, one] as const))('%s', (_, given) => {
  it.each(brokenHttp)(
    '%s → unknown long before its time limit, and the connection ends after few bytes',
    async (...broken) => {
      const { server, result } = await sendTo(given, broken, 60_000)
      expect(result.kind).toBe(outcomeOf(given))
      await eventually(() => server.connections.open === 0)
      // The rest waits in the sockets of this machine.
      expect(server.bytesSent()).toBeLessThan(16_000_000)
    },
  )

  it.each(['never reads', 'lies about the length'] as const)(
    '%s → unknown at its time limit',
    async (misbehaviour) => {
      const { result } = await sendTo(given, [misbehaviour, misbehaviour, http], 200)
      expect(result).toMatchObject({
        kind: outcomeOf(given),
        detail: expect.stringMatching('in time'),
      })
    },
  )
})
