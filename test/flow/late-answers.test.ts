/** A far end may answer after the time limit of the hand-over. The message then goes out once, and is `sent`. */
import { test } from 'vitest'
import { expectOneMessageEach } from './late-far-ends.ts'

test('webhook, Twilio and mail servers answer after the time limit → one message each, sent, and no other provider is asked', async () => {
  await expectOneMessageEach({ timeout: '2s', httpMs: 2_500, mailMs: [2_500, 2_400] })
})
