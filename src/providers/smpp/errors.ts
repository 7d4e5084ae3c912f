import type { SendResult } from '../provider.ts'
import { defaultRetryAfterMs } from '../send-result.ts'

/**
 * command_status of SMPP 3.4 (5.1.3) as our results. Statuses above 0x400 belong to the operator of
 * the SMSC and mean what it likes; retrying elsewhere is the careful reading.
 */
const kinds: ReadonlyMap<number, SendResult['kind']> = new Map([
  [0x04, 'unavailable'], // wrong bind status: the session is no longer bound
  [0x08, 'unavailable'], // system error
  [0x0b, 'invalid_recipient'], // invalid destination address
  [0x0d, 'unavailable'], // bind failed
  [0x0e, 'unavailable'], // wrong password
  [0x0f, 'unavailable'], // wrong system id
  [0x14, 'throttled'], // message queue full
  [0x45, 'unavailable'], // submit failed
  [0x58, 'throttled'], // throttled
  [0x64, 'unavailable'], // receiver temporarily unable
  [0xfe, 'unavailable'], // delivery failure
  [0xff, 'unavailable'], // unknown error
])

export function resultOfStatus(status: number): SendResult {
  const detail = `SMPP status 0x${status.toString(16).padStart(8, '0')}`
  const kind = kinds.get(status) ?? (status >= 0x400 ? 'unavailable' : 'rejected')
  if (kind === 'throttled') return { kind, retryAfterMs: defaultRetryAfterMs, detail }
  return { kind, detail } as SendResult
}
