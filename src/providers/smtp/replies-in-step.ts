/**
 * nodemailer's connection for a server that may send anything. nodemailer gives each reply to the oldest command without
 * one, and keeps replies until a command needs them, without a bound. So a reply too many would answer the next command,
 * and a server that repeats 250 would have accepted each mail before it arrived.
 *
 * Here, bytes that arrived before a command was sent never answer it: the connection ends. This overrides methods of
 * nodemailer that are not documented; `smtp-strangers.test.ts` notices if they change.
 */
import SMTPConnection from 'nodemailer/lib/smtp-connection'

interface Internals {
  /** Complete replies, blank lines, and the lines of an incomplete reply. */
  readonly _responseQueue: readonly string[]
  /** The beginning of a line. */
  readonly _remainder: string
  _onData(chunk: Buffer): void
  _sendCommand(command: string, logged?: string): void
}

const Base = SMTPConnection as unknown as new (
  options: SMTPConnection.Options,
) => SMTPConnection & Internals

/** Three commands at most are under way, and some servers send blank lines. */
const maxWaiting = 100

/** `onOutOfStep` ends the connection. */
export class StepConnection extends Base {
  readonly #onOutOfStep: () => void

  constructor(options: SMTPConnection.Options, onOutOfStep: () => void) {
    super(options)
    this.#onOutOfStep = onOutOfStep
  }

  override _onData(chunk: Buffer): void {
    super._onData(chunk)
    if (this._responseQueue.length > maxWaiting) this.#onOutOfStep()
  }

  override _sendCommand(command: string, logged?: string): void {
    if (this.#hasUnread()) this.#onOutOfStep()
    else super._sendCommand(command, logged)
  }

  /** True if the latest reply permits the content (RFC 5321, 4.2.1), and nothing came after it. */
  get isInStepForContent(): boolean {
    return String(this.lastServerResponse).startsWith('3') && !this.#hasUnread()
  }

  #hasUnread(): boolean {
    return [...this._responseQueue, this._remainder].some((text) => text.trim() !== '')
  }
}
