/** Requests a code, or the next way of a verification, and shows that it is on its way. */
import { type Channel, kindOf } from './channels.ts'
import { createPosternClient, type Result, type Sent, type SentWay } from './client.ts'
import type { Parts } from './parts.ts'
import { clockAheadMs } from './readings.ts'
import { isUnanswered } from './refusal.ts'
import type { SentCode } from './saved-code.ts'
import { canType, leftCode, sentMessage, waitMsOf } from './state.ts'
import { ofKind, type TextName } from './texts.ts'

/** A later repeat is a request for a new code. */
const repeatWithinMs = 60_000

/** Pause before the first question for the latest way. Each pause is twice the one before, so a code is asked about few times. */
const firstPauseMs = 3_000

interface Asked {
  about: string
  /** The `Idempotency-Key`: repeats with it send nothing twice. Without https it is empty, and a repeat may send twice. */
  key: string
  sinceMs: number
}

type Answer = Result<Sent | SentWay>

export function createSending(parts: Parts & { onSent: (channel: Channel) => void }) {
  const { settings, view, screen, memory, work, tell, refused, onSent } = parts
  const { state, addressOf, change, complain } = screen
  let unanswered: Asked | undefined
  let pauseMs = firstPauseMs
  let askAtMs = Date.now() + pauseMs

  return { send, askForWay }

  /** `isNext`: the next way of a verification. Its earlier codes stay valid. */
  async function send(isNext = false): Promise<void> {
    screen.follow()
    const { channel, busyWith, isPassed, sent: earlier } = state
    const to = addressOf()
    if (busyWith || isPassed) return
    const left = leftCode(state, to)
    if (left) return goBack(left)
    if (waitMsOf(state, to) > 0) return
    if (!to) return complain(ofKind(channel, 'Empty'), 'address')
    // Digits that are no number of the shown country. The service could read them as a number of another one.
    const isUnread = kindOf(channel) === 'sms' && screen.countryNow() && !to.startsWith('+')
    if (isUnread) return refused('send', to, { code: 'invalid_recipient' })
    const { scene, language: locale, workflow, email } = settings
    const by = workflow ? { workflow, email: email || undefined } : { channel }
    const body = isNext ? { id: earlier?.id } : { ...by, to, scene, locale }
    unanswered = askedFor(JSON.stringify(body), unanswered)
    const { key: idempotencyKey, sinceMs } = unanswered
    if (earlier && !isNext) {
      state.sent = { ...earlier, id: undefined }
      memory.save()
    }
    const kind = isNext ? 'next' : 'send'
    const ask = createPosternClient(settings)[kind] as (asked: object) => Promise<Answer>
    const result = await work.run('send', (challenge) =>
      ask({ ...body, challenge, idempotencyKey }),
    )
    if (!result) return
    if (result.ok) return sent(to, sinceMs, result.answer)
    if (!isUnanswered(result.problem)) {
      unanswered = undefined
      state.sent = earlier
    }
    refused(kind, to, result.problem)
  }

  /**
   * Asks whether a way failed and the next one began, while a person waits for the code. It asks rarely, and begins
   * nothing: a way never begins by time alone.
   */
  async function askForWay(): Promise<void> {
    const { sent: before } = state
    const { id, to = '', way } = before ?? {}
    const canAsk = () => canType(state) && !state.code
    const nowMs = Date.now()
    if (!id || !way?.next || document.hidden || nowMs < askAtMs || !canAsk()) return
    askAtMs = Infinity
    const { ok, answer } = (await createPosternClient(settings).way(id)) as {
      ok: boolean
      answer: SentWay
    }
    pauseMs *= 2
    askAtMs = nowMs + pauseMs
    if (!ok || answer.way.index <= way.index || state.sent !== before || !canAsk()) return
    // The answer of `next` was perhaps lost.
    sent(to, 0, answer, unanswered?.about.includes(id) ? undefined : `${way.channel}Failed`)
  }

  function goBack(sent: SentCode): void {
    const channel = sent.way?.channel ?? state.channel
    change({ sent, message: sentMessage(channel, sent.codeLength), wrong: '' })
    memory.save()
    view.focus(view.code)
    onSent(channel)
  }

  /** `failed`: the text about the way before. */
  function sent(to: string, sinceMs: number, answer: Sent | SentWay, failed?: TextName): void {
    const about = answer as Sent & Partial<SentWay>
    const { id, to: shownTo, codeLength, expiresAt, resendAt, lockedForMs = 0, way } = about
    const { channel } = way ?? about
    const { sent: earlier } = state
    // The id of a verification is as old as its first way.
    const isSame = earlier?.id === id
    const aheadMs = isSame ? earlier.aheadMs : clockAheadMs(id, sinceMs)
    const endsAtMs = Date.parse(expiresAt) + aheadMs
    const isOpenInTime = Date.now() + lockedForMs < endsAtMs
    const expiresAtMs = isOpenInTime ? endsAtMs : 0
    const message = sentMessage(channel, codeLength, !isSame && earlier?.to === to)
    unanswered = undefined
    pauseMs = firstPauseMs
    askAtMs = Date.now() + pauseMs
    change({
      busyWith: undefined,
      code: '',
      sent: {
        id,
        to,
        country: screen.countryNow(),
        // The answer names the number, also for a way by mail.
        shownTo: way?.channel === 'email' ? settings.email : shownTo,
        codeLength,
        expiresAtMs,
        aheadMs,
        way,
      },
      message: failed ? { ...message, name: failed, note: message.name } : message,
      wrong: '',
    })
    memory.remember(id, endsAtMs)
    memory.hold('waits', to, Date.parse(resendAt) + aheadMs - Date.now())
    if (lockedForMs > 0) {
      memory.hold('locks', to, lockedForMs)
      change({ message: { name: isOpenInTime ? 'sentLocked' : 'locked', tone: 'wrong' } })
    }
    if (!failed) view.focus(view.code)
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
