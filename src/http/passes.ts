/** Passes: the keys they are signed with, and whether one is good. */
import type { Passes } from '../captcha/passes.ts'
import type { NormaliseRecipient } from '../recipient/normalise-recipient.ts'
import { invalid } from './problem.ts'
import { defineRoute, type Route } from './route.ts'
import { jsonWebKeySet, passVerdict, verifyPassBody } from './schemas/passes.ts'
import { recipientOf } from './send-body.ts'

/** Keys are published before anything is signed with them, as they follow from the secret of the environment. */
const jwksSeconds = 300

export function passRoutes(deps: {
  passes: Passes
  normaliseRecipient: NormaliseRecipient
}): Route[] {
  const { passes, normaliseRecipient } = deps
  const jwks = Buffer.from(JSON.stringify(passes.jwks))

  return [
    defineRoute({
      method: 'get',
      path: '/.well-known/jwks.json',
      name: 'getJwks',
      summary: 'The public keys of passes.',
      access: 'open',
      answers: {
        200: { description: 'A JSON Web Key Set (RFC 7517).', schema: jsonWebKeySet },
      },
      problems: ['method_not_allowed'],
      run: async () => ({
        status: 200,
        headers: { 'cache-control': `public, max-age=${jwksSeconds}` },
        text: jwks,
      }),
    }),

    defineRoute({
      method: 'post',
      path: '/v1/passes/verify',
      name: 'verifyPass',
      summary: 'Whether a pass is good. One that is, is good once.',
      access: 'secret',
      body: verifyPassBody,
      answers: {
        200: { description: 'What the pass proves, or why nothing.', schema: passVerdict },
      },
      problems: ['invalid_recipient', 'destination_not_allowed'],
      async run({ key, body }) {
        const { pass, channel, to } = body
        if ((channel === undefined) !== (to === undefined)) {
          throw invalid(channel === undefined ? 'channel' : 'to', 'channel and to belong together')
        }
        const recipient =
          channel && to
            ? { channel, to: recipientOf(normaliseRecipient, { channel, to }).to }
            : undefined
        const verdict = await passes.verify(pass, key.app, recipient)
        return { status: 200, body: verdict }
      },
    }),
  ]
}
