/**
 * One field at work: asks for an address, sends a code there, reads it and has it checked. What it knows lies in
 * the `state` of its screen; everything that happens changes that, and is seen at once.
 *
 * The service decides how long to wait, how often to try and who is asked for a challenge. The field only says
 * so: it can't be trusted, and nothing here is a defence.
 */
import {
  type Challenge,
  type Channel,
  createPosternClient,
  type Passed,
  type Problem,
  type Sent,
} from './client.ts'
import { pastChallenges } from './past-challenges.ts'
import { solveChallenge } from './proof-of-work.ts'
import { clockAheadMs, digitsIn, lifeOfPassMs } from './readings.ts'
import { isUnanswered, refusalOf } from './refusal.ts'
import { createSavedCode } from './saved-code.ts'
import { createScreen } from './screen.ts'
import { type Asked, askedFor } from './send-key.ts'
import type { Settings } from './settings.ts'
import { emptyState, waitMsOf } from './state.ts'
import type { TextOf } from './texts.ts'
import { createView } from './view.ts'
import { readCodeFromMessage } from './web-otp.ts'

export type Field = ReturnType<typeof createField>

export function createField(host: HTMLElement, settings: Settings, text: TextOf) {
  const view = createView(host)
  const screen = createScreen(view, settings, text)
  const { state, addressOf, change, say, complain, draw } = screen
  let passTimer: ReturnType<typeof setTimeout> | undefined
  /** Aborted when what goes on is of no use any more. */
  let work = new AbortController()
  let messageReader = new AbortController()
  let unanswered: Asked | undefined

  const client = () => createPosternClient(settings)
  const savedCode = () =>
    createSavedCode(`postern ${settings.src} ${settings.key} ${settings.scene}`)

  view.send.addEventListener('click', () => send())
  view.again.addEventListener('click', () => send())
  view.other.addEventListener('click', switchChannel)
  view.change.addEventListener('click', changeAddress)
  view.address.addEventListener('input', () => change({ wrong: '', message: undefined }))
  view.address.addEventListener('keydown', (event) => onEnter(event, send))
  view.code.addEventListener('keydown', (event) => onEnter(event, check))
  view.code.addEventListener('input', () => typed(view.code.value))
  view.code.addEventListener('paste', (event) => {
    // `maxlength` would cut "Your code: 12 34" before its digits.
    event.preventDefault()
    if (!view.code.readOnly) typed(event.clipboardData?.getData('text') ?? '')
  })
  const form = host.closest('form')
  addEventListener('online', online)
  addEventListener('pageshow', shownAgain)
  form?.addEventListener('reset', reset)
  form?.addEventListener('submit', submitted, { capture: true })
  begin()

  return {
    begin,
    draw,
    reset,
    pass: view.pass,
    /** A vendor's token. */
    answer(token: string): void {
      const { onAnswer } = state
      view.challenge.replaceChildren()
      change({ onAnswer: undefined })
      onAnswer?.(token)
    },
    remove(): void {
      stop()
      removeEventListener('online', online)
      removeEventListener('pageshow', shownAgain)
      form?.removeEventListener('reset', reset)
      form?.removeEventListener('submit', submitted, { capture: true })
      view.remove()
    },
  }

  /** From what a reload left, or from nothing. */
  function begin(): void {
    stop()
    const { channels, given } = settings
    const first = given && channels.includes(given.channel) ? given.channel : (channels[0] ?? 'sms')
    const saved = savedCode().read()
    view.carry('', '', '')
    view.code.value = ''
    Object.assign(state, emptyState(first))
    if (saved && channels.includes(saved.channel)) {
      Object.assign(state, saved, { step: saved.sent ? 'code' : 'address' })
      if (saved.sent && !view.address.value) view.address.value = saved.sent.to
    }
    if (!settings.key || !settings.src || channels.length === 0) {
      console.error('<postern-code> needs the attributes key, src and channels')
      state.message = { name: 'setup', tone: 'wrong' }
    }
    draw()
  }

  function stop(): void {
    work.abort()
    messageReader.abort()
    screen.stop()
    clearTimeout(passTimer)
  }

  function reset(): void {
    savedCode().write(undefined)
    begin()
  }

  function wait(waitMs: number): void {
    const { waits, channel } = state
    const until = { to: addressOf(), untilMs: Date.now() + waitMs }
    change({ waits: { ...waits, [channel]: until } })
    save()
  }

  function save(): void {
    const { channel, sent, waits } = state
    savedCode().write({ channel, sent, waits })
  }

  /** Undefined while something goes on; else the signal of what begins now. */
  function startWork(): AbortSignal | undefined {
    if (state.isBusy || state.isPassed) return undefined
    work.abort()
    work = new AbortController()
    return work.signal
  }

  async function send(): Promise<void> {
    const { channel } = state
    const to = addressOf()
    if (waitMsOf(state, to) > 0) return
    if (!to) return complain(channel === 'sms' ? 'smsEmpty' : 'emailEmpty', 'address')
    const signal = startWork()
    if (!signal) return
    say('sending')
    const { scene, language: locale } = settings
    unanswered = askedFor(`${channel} ${to} ${scene} ${locale}`, unanswered)
    const { key: idempotencyKey, sinceMs } = unanswered
    const result = await pastChallenges(
      (challenge) => client().send({ channel, to, scene, locale, challenge, idempotencyKey }),
      (challenge) => solve(challenge, signal),
      signal,
    )
    if (!result || signal.aborted) return
    if (result.ok || !isUnanswered(result.problem)) unanswered = undefined
    if (result.ok) sent(to, sinceMs, result.answer)
    else refused('send', result.problem)
  }

  function sent(to: string, sinceMs: number, answer: Sent): void {
    const { id, channel, to: shownTo, codeLength, expiresAt, resendAt } = answer
    const aheadMs = clockAheadMs(id, sinceMs)
    view.code.value = ''
    change({
      step: 'code',
      isBusy: false,
      sent: { id, to, shownTo, codeLength, expiresAtMs: Date.parse(expiresAt) + aheadMs },
      message: {
        name: channel === 'sms' ? 'sent' : 'sentEmail',
        values: { n: codeLength },
        tone: 'plain',
      },
      wrong: '',
    })
    wait(Date.parse(resendAt) + aheadMs - Date.now())
    view.code.focus()
    tell('sent', { id, channel, to: shownTo, expiresAt, resendAt })
    if (channel === 'sms') void readMessage()
  }

  async function readMessage(): Promise<void> {
    messageReader.abort()
    messageReader = new AbortController()
    const { signal } = messageReader
    const code = await readCodeFromMessage(signal)
    if (code && !signal.aborted) typed(code)
  }

  function typed(written: string): void {
    const { sent, isPassed, isBusy, message } = state
    if (!sent || isPassed || isBusy) return
    view.code.value = digitsIn(written).slice(0, sent.codeLength)
    const isOver = view.code.value !== '' && message?.tone === 'wrong'
    change({ wrong: '', ...(isOver ? { message: undefined } : {}) })
    if (view.code.value.length === sent.codeLength) void check()
  }

  async function check(): Promise<void> {
    const { sent, channel } = state
    const code = view.code.value
    if (!sent || code.length !== sent.codeLength) return
    const signal = startWork()
    if (!signal) return
    say('checking')
    const { id, to } = sent
    const { scene } = settings
    const result = await pastChallenges(
      (challenge) => client().check({ channel, to, scene, code, id, challenge }),
      (challenge) => solve(challenge, signal),
      signal,
    )
    if (!result || signal.aborted) return
    if (result.ok) passed(result.answer)
    else refused('check', result.problem)
  }

  function passed({ pass, id, scene, verifiedAt }: Passed): void {
    messageReader.abort()
    savedCode().write(undefined)
    const { channel } = state
    const to = addressOf()
    view.carry(pass ?? '', channel, to)
    const message = { name: 'passed', tone: 'right' } as const
    change({ isBusy: false, isPassed: true, wrong: '', message })
    const lifeMs = pass && lifeOfPassMs(pass)
    if (lifeMs) passTimer = setTimeout(passExpired, lifeMs)
    tell('passed', { pass, id, scene, verifiedAt, channel, to })
  }

  function passExpired(): void {
    reset()
    complain('passExpired')
  }

  function solve(offer: Challenge, signal: AbortSignal): Promise<string> {
    if (offer.kind === 'altcha') {
      say('solving')
      return solveChallenge(offer.challenge, signal)
    }
    const { kind, siteKey } = offer
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
      const onAnswer = (token: string) => {
        say('solving')
        resolve(token)
      }
      change({ onAnswer, message: { name: 'challenge', tone: 'plain' } })
      tell('challenge', { kind, siteKey, container: view.challenge })
    })
  }

  function refused(during: 'send' | 'check', problem: Problem): void {
    const { channel, sent } = state
    const hasOther = settings.channels.length > 1
    const refusal = refusalOf(problem, { during, channel, hasOther })
    const { name, values, about = '', waitMs, isGone, isFault } = refusal
    if (isFault) console.error('<postern-code> was refused:', problem)
    // What was not compared may be sent again as it stands.
    if (during === 'check' && !isUnanswered(problem)) view.code.value = ''
    if (isGone && sent) {
      state.sent = { ...sent, expiresAtMs: 0 }
      save()
    }
    if (waitMs !== undefined) wait(waitMs)
    if (about === 'address') change({ step: 'address', sent: undefined })
    complain(name, about, values)
    tell('refused', { during, problem, channel })
  }

  function switchChannel(): void {
    const other = settings.channels.find((channel) => channel !== state.channel)
    if (!other) return
    view.address.value = ''
    goToAddress(other)
  }

  function changeAddress(): void {
    goToAddress(state.channel)
    view.address.select()
  }

  function goToAddress(channel: Channel): void {
    work.abort()
    messageReader.abort()
    view.code.value = ''
    view.challenge.replaceChildren()
    change({ ...emptyState(channel), waits: state.waits })
    save()
    ;(view.address.hidden ? view.send : view.address).focus()
  }

  /** Before the page's own handlers. */
  function submitted(event: Event): void {
    if (!settings.isRequired || state.isPassed) return
    event.preventDefault()
    event.stopImmediatePropagation()
    if (state.isBusy) return
    complain('required', state.step)
    if (state.step === 'code') view.code.focus()
  }

  function tell(type: string, detail: object): void {
    host.dispatchEvent(new CustomEvent(type, { detail, bubbles: true }))
  }

  function online(): void {
    if (state.message?.name === 'offline') change({ message: undefined })
  }

  /** Come back to after the form was sent: its pass is used. */
  function shownAgain({ persisted }: PageTransitionEvent): void {
    if (persisted && state.isPassed) reset()
  }
}

/** The surrounding form must not be sent by it. */
function onEnter(event: KeyboardEvent, run: () => void): void {
  if (event.key !== 'Enter' || event.isComposing) return
  event.preventDefault()
  run()
}
