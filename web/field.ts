/**
 * One field at work: asks for an address, sends a code there, reads it and has it checked. What it knows lies in
 * `state`; everything that happens changes that and draws it anew.
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
import { digitsIn, idTimeMs, lifeOfPassMs } from './readings.ts'
import { isUnanswered, refusalOf } from './refusal.ts'
import { createSavedCode } from './saved-code.ts'
import type { Settings } from './settings.ts'
import { emptyState, type State, shownOf, waitMsOf } from './state.ts'
import type { TextName, Values } from './texts.ts'
import { createView } from './view.ts'
import { readCodeFromMessage } from './web-otp.ts'

const tickMs = 250
/** So far the clocks here and there may be apart without a word. */
const clockToleranceMs = 1_000
/** A repeat after it means another code. */
const repeatWithinMs = 60_000

export type Field = ReturnType<typeof createField>

export function createField(
  host: HTMLElement,
  settings: Settings,
  text: (name: TextName, values?: Values) => string,
) {
  const view = createView(host)
  let state: State = emptyState('sms')
  let timer: ReturnType<typeof setInterval> | undefined
  let passTimer: ReturnType<typeof setTimeout> | undefined
  /** Aborted when what goes on is of no use any more. */
  let work = new AbortController()
  let messageReader = new AbortController()
  /** Of a send whose answer has not come: its repeat must not send twice. */
  let unanswered: { about: string; key: string; sinceMs: number } | undefined

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
  for (const type of ['focus', 'blur', 'keyup', 'pointerup']) {
    view.code.addEventListener(type, drawCaret)
  }
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
    state = emptyState(first)
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
    clearInterval(timer)
    clearTimeout(passTimer)
    timer = undefined
  }

  function reset(): void {
    savedCode().write(undefined)
    begin()
  }

  /** Where a code goes. */
  function addressOf(): string {
    if (state.step === 'code' && state.sent) return state.sent.to
    return givenNow()?.to ?? view.address.value.trim()
  }

  function givenNow() {
    const { given } = settings
    return given?.channel === state.channel ? given : undefined
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
    const about = `${channel} ${to} ${scene} ${locale}`
    const isRepeat = unanswered?.about === about && Date.now() - unanswered.sinceMs < repeatWithinMs
    // Without https there is no key, and a repeat may send twice.
    const asked =
      unanswered && isRepeat
        ? unanswered
        : { about, key: crypto.randomUUID?.() ?? '', sinceMs: Date.now() }
    unanswered = asked
    const { key: idempotencyKey, sinceMs } = asked
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
    // The id was made since we asked. A clock that says otherwise is set wrong.
    const aheadMs = Date.now() - idTimeMs(id)
    const isRight = aheadMs > -clockToleranceMs && aheadMs < Date.now() - sinceMs + clockToleranceMs
    const skewMs = isRight ? 0 : aheadMs
    view.code.value = ''
    change({
      step: 'code',
      isBusy: false,
      sent: { id, to, shownTo, codeLength, expiresAtMs: Date.parse(expiresAt) + skewMs },
      message: {
        name: channel === 'sms' ? 'sent' : 'sentEmail',
        values: { n: codeLength },
        tone: 'plain',
      },
      wrong: '',
    })
    wait(Date.parse(resendAt) + skewMs - Date.now())
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
    const lifeMs = pass ? lifeOfPassMs(pass) : undefined
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
    state = { ...emptyState(channel), waits: state.waits }
    save()
    draw()
    ;(givenNow() ? view.send : view.address).focus()
  }

  function say(name: TextName): void {
    change({ isBusy: true, wrong: '', message: { name, tone: 'busy' } })
  }

  function complain(name: TextName, wrong: State['wrong'] = '', values?: Values): void {
    view.challenge.replaceChildren()
    change({ isBusy: false, onAnswer: undefined, wrong, message: { name, values, tone: 'wrong' } })
    if (wrong !== 'address') return
    const input = givenNow()?.input ?? view.address
    if (!input.hidden) input.focus()
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

  function change(changes: Partial<State>): void {
    Object.assign(state, changes)
    draw()
  }

  function drawCaret(): void {
    const { code } = view
    // There is one place to type at: the first that is empty.
    if (code.selectionStart === code.selectionEnd) {
      code.setSelectionRange(code.value.length, code.value.length)
    }
    draw()
  }

  function draw(): void {
    const waitMs = waitMsOf(state, addressOf())
    view.render(shownOf(state, { settings, given: givenNow(), waitMs, text }))
    if (waitMs > 0) timer ??= setInterval(tick, tickMs)
    else {
      clearInterval(timer)
      timer = undefined
    }
  }

  function tick(): void {
    const isWaitedFor = ['limited', 'limitedOther', 'locked'].includes(state.message?.name ?? '')
    if (isWaitedFor && waitMsOf(state, addressOf()) === 0) {
      change({ message: { name: 'ready', tone: 'plain' } })
    } else draw()
  }
}

/** The surrounding form must not be sent by it. */
function onEnter(event: KeyboardEvent, run: () => void): void {
  if (event.key !== 'Enter' || event.isComposing) return
  event.preventDefault()
  run()
}
