import { expect, test } from 'vitest'
import { resultOfCode } from '../../src/providers/tencent/errors.ts'
import { resultOfError } from '../../src/providers/twilio/index.ts'
import { resultOfStatus } from '../../src/providers/vonage/index.ts'

// Twilio: https://www.twilio.com/docs/api/errors/21610 and /21635. Vonage: https://developer.vonage.com/en/api-errors/sms.
test.each([
  ['twilio 21635', resultOfError(21635, 400)],
  ['vonage 6', resultOfStatus('6')],
  ['vonage 7', resultOfStatus('7')],
  [
    'tencent FailedOperation.PhoneNumberInBlacklist',
    resultOfCode('FailedOperation.PhoneNumberInBlacklist'),
  ],
])(
  '%s: about the recipient at this vendor alone, so another provider may send',
  (detail, result) => {
    expect(result).toEqual({ kind: 'invalid_recipient', isBarredHere: true, detail })
  },
)

test('twilio 21610: the recipient has opted out of this sender, which is remembered', () => {
  const barred = { kind: 'invalid_recipient', isBarredHere: true, detail: 'twilio 21610' }
  expect(resultOfError(21610, 400)).toEqual({ ...barred, suppresses: 'opted_out' })
})

test('a number that is no mobile number at all: no other provider is asked', () => {
  expect(resultOfError(21614, 400)).toEqual({ kind: 'invalid_recipient', detail: 'twilio 21614' })
})
