import fc from 'fast-check'
import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { type CodeOwner, createCodeStore } from '../../src/captcha/code-store.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { type Lane, lanes } from '../../src/rules/caller.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'

const redis = await testRedis()
const store = createCodeStore(
  await redis.connect('code'),
  createSecrets('a secret of at least thirty-two bytes'),
  { keyPrefix: redis.prefix, ttlMs: 300_000, triesPerCode: 3 },
)
releaseLater(() => store.close())

/** A send that is under way, with its state. */
interface Send {
  id: string
  code: string
  state: 'under way' | 'accepted' | 'undone'
}

const lane = fc.constantFrom(...lanes)
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('begin' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('accept' as const), which: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('undo' as const), which: fc.nat(2) }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('guess' as const), which: fc.nat(4), lane }),
  },
)

test('with any order of sends and undos: the code accepted last passes, once, in each lane that has tries left, and no other ever does (I4, I5, I6, I23)', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 20 }), async (steps) => {
      const owner: CodeOwner = {
        app: newId(),
        scene: 'login',
        channel: 'sms',
        to: '+8613800138000',
      }
      const sends: Send[] = []
      let current: (Send & { tries: Record<Lane, number> }) | undefined
      let lastAccepted = -1
      const underWay = () => sends.filter(({ state }) => state === 'under way')
      for (const one of steps) {
        if (one.do === 'begin') {
          if (underWay().length >= 3) continue
          const send: Send = { id: newId(), code: String(1_000 + sends.length), state: 'under way' }
          sends.push(send)
          await store.remember(owner, send.id, send.code)
        } else if (one.do === 'accept') {
          const send = underWay()[one.which]
          if (!send) continue
          // A send that began before the last accepted one is already replaced by it.
          const isNewer = sends.indexOf(send) > lastAccepted
          send.state = 'accepted'
          expect((await store.settle(owner, send.id)) === 'current').toBe(isNewer)
          if (!isNewer) continue
          lastAccepted = sends.indexOf(send)
          current = { ...send, tries: { stranger: 3, known: 3 } }
        } else if (one.do === 'undo') {
          const send = underWay()[one.which]
          if (!send) continue
          send.state = 'undone'
          store.forget(owner, send.id)
        } else {
          const send = sends[one.which]
          // The very first code passes at once, because no other code could be harmed.
          if (!send || send.state === 'under way') continue
          // Its wrong guesses would count against a first code that is not accepted yet.
          if (!current && underWay().length > 0) continue
          const { lane } = one
          const guess = await store.guess(owner, send.code, '', undefined, undefined, lane)
          const hasTries = current !== undefined && current.tries[lane] > 0
          const isRight = hasTries && send.id === current?.id
          expect(guess.result === 'passed').toBe(isRight)
          if (isRight) current = undefined
          else if (guess.result === 'mismatch' && current) {
            current.tries[lane] -= 1
            expect(guess.triesLeft).toBe(current.tries[lane])
          }
        }
      }
    }),
    { numRuns: 300 },
  )
})
