/** Accepts a code that is typed, pasted, filled in or read from a message. Then asks the service to check it. */
import { createPosternClient, type Passed } from './client.ts'
import type { Parts } from './parts.ts'
import { claimsOf, codeIn } from './readings.ts'
import { canType } from './state.ts'

export function createChecking(parts: Parts & { onPassed: () => void }) {
  const { settings, view, screen, memory, work, tell, refused, onPassed } = parts
  const { state, addressOf, change } = screen
  let messageReader = new AbortController()

  return {
    codeTyped,
    check,
    readMessage,

    /** `text` may contain the code anywhere. */
    textPasted(text: string): void {
      if (!canType(state)) return
      const { codeLength: n } = state.sent
      if (codeIn(text, n) !== undefined) codeTyped(text)
      else change({ message: { name: 'noCode', values: { n }, tone: 'wrong' } })
    },

    /** Stops waiting for a message. */
    stop: () => messageReader.abort(),
  }

  /** Ignores text that is not a code or the first digits of one. */
  function codeTyped(written: string): void {
    const { message } = state
    const code = canType(state) ? codeIn(written, state.sent.codeLength) : undefined
    const isOver = message?.tone === 'wrong' && (code || message.name === 'noCode')
    if (code === undefined) screen.redraw()
    else change({ code, wrong: '', message: isOver ? undefined : message })
    if (code) void check()
  }

  async function check(): Promise<void> {
    if (!canType(state)) return
    const { sent, channel, code } = state
    if (code.length !== sent.codeLength) return
    const { id, to, way } = sent
    const { scene } = settings
    const about = way && id ? { id } : { channel, to, scene, id }
    const result = await work.run('check', (challenge) =>
      createPosternClient(settings).check({ ...about, code, challenge }, to),
    )
    if (!result) return
    if (result.ok) passed(result.answer)
    else refused('check', to, result.problem)
  }

  function passed({ pass, id, scene, verifiedAt }: Passed): void {
    messageReader.abort()
    memory.forget()
    const { lifeMs, channel = state.channel } = claimsOf(pass)
    const to = state.sent?.way && channel === 'email' ? settings.email : addressOf()
    view.carry(pass, channel, to)
    const message = { name: 'passed', tone: 'right' } as const
    const passEndsAtMs = Date.now() + lifeMs
    Object.assign(state, { busyWith: undefined, isPassed: true, passEndsAtMs, wrong: '', message })
    // The person may have corrected the address of the page during the check.
    screen.follow()
    tell('passed', { pass, id, scene, verifiedAt, channel, to })
    onPassed()
  }

  /** Reads the code from the message if the browser supports it and the person agrees. */
  async function readMessage(): Promise<void> {
    messageReader.abort()
    messageReader = new AbortController()
    const { signal } = messageReader
    const code = await readCodeFromMessage(signal)
    if (code && !signal.aborted) codeTyped(code)
  }
}

/**
 * The code from the text message, for browsers that can read it (WebOTP: Chrome on Android). The browser asks the person
 * first. The message must end with `@example.org #1234`.
 */
async function readCodeFromMessage(signal: AbortSignal): Promise<string | undefined> {
  if (!('OTPCredential' in globalThis)) return undefined
  try {
    const options = { otp: { transport: ['sms'] }, signal } as CredentialRequestOptions
    const credential = await navigator.credentials.get(options)
    return (credential as { code?: string } | null)?.code
  } catch {
    // Refused, aborted, or not allowed by the page's Permissions-Policy.
    return undefined
  }
}
