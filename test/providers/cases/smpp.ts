import { type Conformance, codeBySms } from '../conformance.ts'
import { startSmppFarEnd } from '../far-ends/smpp.ts'

export { smpp as default } from '../../../src/providers/smpp/index.ts'

export const conformance = {
  startFarEnd: () => startSmppFarEnd(),
  settings: (port) => ({ url: `smpp://postern:pass@127.0.0.1:${port}`, from: 'Acme' }),
  secrets: ['postern:pass'],
  carriesReference: false,
  message: codeBySms,
  expected: {
    accept: 'accepted',
    reject: 'rejected',
    invalid_recipient: 'invalid_recipient',
    throttle: 'throttled',
    postpone: 'postponed',
    unavailable: 'unavailable',
    error_inside: 'unavailable',
    hang: ['unavailable', 'unknown'],
    refuse_talk: 'unavailable',
    babble: 'unavailable',
    reset_mid_answer: 'unknown',
    lose_answer: 'unknown',
  },
} satisfies Conformance
