/** Requests a code and shows that it is on its way. */
import { createPosternClient, type Sent } from './client.ts'
import type { Parts } from './parts.ts'
import { clockAheadMs } from './readings.ts'
import { isUnanswered } from './refusal.ts'
import type { SentCode } from './saved-code.ts'
import { leftCode, sentMessage, waitMsOf } from './state.ts'

/** A later repeat is a request for a new code. */
const repeatWithinMs = 60_000

interface Asked {
  about: string
  /** The `Idempotency-Key`: repeats with it send nothing twice. Without https it is empty, and a repeat may send twice. */
  key: string
  sinceMs: number
}

export function createSending(parts: Parts & { onSent: (channel: Sent['channel']) => void }) {
  const { settings, view, screen, memory, work, tell, refused, onSent } = parts
  const { state, addressOf, change, complain } = screen
  let unanswered: Asked | undefined

  return async function send(): Promise<void> {
    screen.follow()
    const { channel, busyWith, isPassed } = state
    const to = addressOf()
    if (busyWith || isPassed) return
    const left = leftCode(state, to)
    if (left) return goBack(left)
    if (waitMsOf(state, to) > 0) return
    if (!to) return complain(channel === 'sms' ? 'smsEmpty' : 'emailEmpty', 'address')
    // Digits that are no number of the shown country. The service could read them as a number of another one.
    const isUnread = channel === 'sms' && screen.countryNow() && !to.startsWith('+')
    if (isUnread) return refused('send', to, { code: 'invalid_recipient' })
    const { scene, language: locale } = settings
    unanswered = askedFor(`${channel} ${to} ${scene} ${locale}`, unanswered)
    const { key: idempotencyKey, sinceMs } = unanswered
    const { sent: earlier } = state
    if (earlier) {
      state.sent = { ...earlier, id: undefined }
      memory.save()
    }
    const result = await work.run('send', (challenge) =>
      createPosternClient(settings).send({ channel, to, scene, locale, challenge, idempotencyKey }),
    )
    if (!result) return
    const isAnswered = result.ok || !isUnanswered(result.problem)
    if (isAnswered) unanswered = undefined
    if (result.ok) return sent(to, sinceMs, result.answer)
    if (isAnswered) state.sent = earlier
    refused('send', to, result.problem)
  }

  function goBack(sent: SentCode): void {
    change({ sent, message: sentMessage(state.channel, sent.codeLength, false), wrong: '' })
    memory.save()
    view.focus(view.code)
    onSent(state.channel)
  }

  function sent(to: string, sinceMs: number, answer: Sent): void {
    const { id, channel, to: shownTo, codeLength, expiresAt, resendAt, lockedForMs = 0 } = answer
    const aheadMs = clockAheadMs(id, sinceMs)
    const endsAtMs = Date.parse(expiresAt) + aheadMs
    const isOpenInTime = Date.now() + lockedForMs < endsAtMs
    const expiresAtMs = isOpenInTime ? endsAtMs : 0
    const isAgain = state.sent?.to === to
    change({
      busyWith: undefined,
      code: '',
      sent: { id, to, country: screen.countryNow(), shownTo, codeLength, expiresAtMs },
      message: sentMessage(channel, codeLength, isAgain),
      wrong: '',
    })
    memory.remember(id, endsAtMs)
    memory.hold('waits', to, Date.parse(resendAt) + aheadMs - Date.now())
    if (lockedForMs > 0) {
      memory.hold('locks', to, lockedForMs)
      change({ message: { name: isOpenInTime ? 'sentLocked' : 'locked', tone: 'wrong' } })
    }
    view.focus(view.code)
    tell('sent', { id, channel, to: shownTo, expiresAt, resendAt })
    onSent(channel)
  }
}

/** A send without an answer may have succeeded, so its repeat has the same key. */
function askedFor(about: string, unanswered: Asked | undefined): Asked {
  const nowMs = Date.now()
  const isRepeat = unanswered?.about === about && nowMs - unanswered.sinceMs < repeatWithinMs
  return isRepeat ? unanswered : { about, key: crypto.randomUUID?.() ?? '', sinceMs: nowMs }
}
