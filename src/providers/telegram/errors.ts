import type { SendResult } from '../provider.ts'
import { isCode, type Refusal, refused } from '../send-result.ts'

/** Errors that change the result. Telegram has no list of them; these are of its page and of its answers. */
const kinds: ReadonlyMap<string, Refusal> = new Map([
  ['PHONE_NUMBER_NOT_AVAILABLE', 'invalid_recipient'],
  ['PHONE_NUMBER_NOT_FOUND', 'invalid_recipient'],
  ['PHONE_NUMBER_INVALID', 'invalid_recipient'],
  ['ACCESS_TOKEN_INVALID', 'unavailable'],
  ['ACCESS_TOKEN_REQUIRED', 'unavailable'],
  ['BALANCE_NOT_ENOUGH', 'unavailable'],
  ['SENDER_NOT_FOUND', 'unavailable'],
  ['SENDER_NOT_OWNED', 'unavailable'],
  ['SENDER_NOT_VERIFIED', 'unavailable'],
  ['SENDER_USERNAME_INVALID', 'unavailable'],
])

/** `error`: the name of an unsuccessful answer. */
export function resultOfError(error: string): SendResult {
  const seconds = /^FLOOD_WAIT_(\d{1,6})$/.exec(error)?.[1]
  if (seconds) return refused('throttled', 'telegram FLOOD_WAIT', Number(seconds) * 1_000)
  const detail = isCode(error) ? `telegram ${error}` : 'telegram error'
  return refused(kinds.get(error) ?? 'rejected', detail)
}
