import { type Conformance, codeBySms, expectedOverHttp } from '../conformance.ts'
import { startTelegramFarEnd } from '../far-ends/telegram.ts'

export { telegram as default } from '../../../src/providers/telegram/index.ts'

export const entry = { token: 'AAHtest-token', senderUsername: 'acmecodes' }

/** Telegram has no answer that delays one number only. */
const { postpone: _, ...expected } = expectedOverHttp

export const conformance = {
  startFarEnd: () => startTelegramFarEnd(entry.token),
  settings: (port) => ({ ...entry, endpoint: `http://127.0.0.1:${port}` }),
  secrets: [entry.token],
  message: { ...codeBySms, channel: 'telegram' },
  expected,
} satisfies Conformance
