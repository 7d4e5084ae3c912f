/** The element `<postern-code>`, and the client for pages that have another field. */
import { readAddress } from './code-link.ts'
import type { ElementWithEvents } from './events.ts'
import { createField, type Field } from './field.ts'
import { settingNames, settingsOf } from './settings.ts'
import { adoptStyle } from './style.ts'
import type { Texts } from './texts.ts'

// A server that renders pages has no class HTMLElement.
const Base: new () => ElementWithEvents = globalThis.HTMLElement ?? class {}

/** With another service, key or purpose, the field is another one. Other attributes change only what it shows. */
const identity = ['src', 'key', 'publishable-key', 'scene']

export class PosternCode extends Base {
  static formAssociated = true
  static observedAttributes = settingNames

  #texts: Partial<Texts> = {}
  #field: Field | undefined
  #internals = this.attachInternals()

  connectedCallback(): void {
    adoptStyle(this.getRootNode())
    if (this.#field) {
      this.#field.rewatch()
      return
    }
    // The elements of an earlier field: of this element, or of one that was cloned or written as HTML.
    this.querySelector('.postern-field')?.remove()
    // Removes text that was meant for browsers without JavaScript. The style can hide elements, but not bare text.
    for (const node of this.childNodes) if (node.nodeType === Node.TEXT_NODE) node.nodeValue = ''
    // Texts that the page gave before this script arrived are a property that hides the one of the class.
    const { texts } = this
    delete (this as { texts?: unknown }).texts
    this.#texts = texts ?? {}
    const settings = settingsOf(this)
    this.#field = createField(
      this,
      settings,
      (name) => this.#texts[name] ?? settings.textOf(name),
      (message, entry) =>
        this.#internals.setValidity({ valueMissing: message !== '' }, message, entry),
    )
  }

  /** A move within the page is a removal and an insertion in one task. It keeps the field and its pass. */
  disconnectedCallback(): void {
    queueMicrotask(() => {
      if (this.isConnected) return
      this.#field?.remove()
      this.#field = undefined
    })
  }

  /** `moveBefore` moves without a removal. */
  connectedMoveCallback(): void {
    this.connectedCallback()
  }

  attributeChangedCallback(name: string, before: string | null, after: string | null): void {
    if (before === after) return
    const field = this.#field
    if (name === 'channels' || name === 'workflow') field?.channelsChanged()
    else if (name === 'to' || name === 'for') field?.follow()
    else if (identity.includes(name)) field?.begin()
    else field?.redraw()
  }

  /** Texts that the page replaces, by their names (docs/code-field.md). */
  get texts(): Partial<Texts> {
    return this.#texts
  }
  set texts(texts: Partial<Texts> | undefined) {
    this.#texts = texts ?? {}
    this.#field?.redraw()
  }

  /** The value that the form sends as `postern-pass`; empty until a code has passed. */
  get pass(): string {
    return this.#field?.pass() ?? ''
  }

  // Like the property of other inputs: `valueMissing` if the field is `required` and no code has passed.
  get validity(): ValidityState {
    return this.#internals.validity
  }
  get validationMessage(): string {
    return this.#internals.validationMessage
  }
  checkValidity(): boolean {
    return this.#internals.checkValidity()
  }
  reportValidity(): boolean {
    return this.#internals.reportValidity()
  }

  formResetCallback(): void {
    this.#field?.formReset()
  }

  /** Gives the field the token of a vendor after the event `challenge`. */
  answer(token: string): void {
    this.#field?.answer(token)
  }

  /** Empties the field, as if nothing had been sent. */
  reset(): void {
    this.#field?.reset()
  }
}

export * from './client.ts'
export type { FieldEvents } from './events.ts'
export { type AltchaChallenge, solveChallenge, UnsolvableError } from './proof-of-work.ts'
export type { TextName, Texts } from './texts.ts'

if (globalThis.location) readAddress()
if (globalThis.customElements && !customElements.get('postern-code')) {
  customElements.define('postern-code', PosternCode)
}

declare global {
  interface HTMLElementTagNameMap {
    'postern-code': PosternCode
  }
}
