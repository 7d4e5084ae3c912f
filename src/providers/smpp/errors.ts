import type { SendResult } from '../provider.ts'
import { type Refusal, refused } from '../send-result.ts'

/**
 * Maps command_status of SMPP 3.4 (5.1.3) to results. Only statuses about the session, the system or the pace concern
 * all messages. A queue may be full for one number only, and a submission may fail because of its number. Statuses
 * above 0x400 are defined by each SMSC. For these, only this message waits, because the status may concern only this
 * message.
 */
const kinds: ReadonlyMap<number, Refusal> = new Map([
  [0x04, 'unavailable'], // wrong bind status: the session is no longer bound
  [0x08, 'unavailable'], // system error
  [0x0b, 'invalid_recipient'], // invalid destination address
  [0x0d, 'unavailable'], // bind failed
  [0x0e, 'unavailable'], // wrong password
  [0x0f, 'unavailable'], // wrong system id
  [0x14, 'postponed'], // message queue full
  [0x45, 'postponed'], // submit failed
  [0x58, 'throttled'], // throttled
  [0x64, 'postponed'], // receiver temporarily unable
  [0xfe, 'postponed'], // delivery failure
  [0xff, 'postponed'], // unknown error
])

export function resultOfStatus(status: number): SendResult {
  const detail = `SMPP status 0x${status.toString(16).padStart(8, '0')}`
  return refused(kinds.get(status) ?? (status >= 0x400 ? 'postponed' : 'rejected'), detail)
}
