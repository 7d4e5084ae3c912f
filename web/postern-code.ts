/** `<postern-code>`, and what else a page may import: the client alone, for a field of one's own. */
import { createField, type Field } from './field.ts'
import { settingNames, settingsOf } from './settings.ts'
import { adoptStyle } from './style.ts'
import { fill, type Texts, textsOf } from './texts.ts'

// Imported where pages are rendered on a server, there is no such class.
const Base = globalThis.HTMLElement ?? (class {} as typeof HTMLElement)

export class PosternCode extends Base {
  static observedAttributes = settingNames

  #texts: Partial<Texts> = {}
  #field: Field | undefined

  connectedCallback(): void {
    adoptStyle(this.getRootNode())
    // What stands here for pages without JavaScript: the style hides it, but for bare text.
    for (const node of this.childNodes) if (node.nodeType === Node.TEXT_NODE) node.nodeValue = ''
    const settings = settingsOf(this)
    this.#field = createField(this, settings, (name, values) =>
      fill(this.#texts[name] ?? settings.textOf(name) ?? textsOf(settings.language)[name], values),
    )
  }

  disconnectedCallback(): void {
    this.#field?.remove()
    this.#field = undefined
  }

  attributeChangedCallback(name: string, before: string | null, after: string | null): void {
    if (before === after) return
    if (name === 'lang') this.#field?.draw()
    else this.#field?.begin()
  }

  /** Sentences in the page's own words or language, by their names (docs/code-field.md). */
  get texts(): Partial<Texts> {
    return this.#texts
  }
  set texts(texts: Partial<Texts>) {
    this.#texts = texts
    this.#field?.draw()
  }

  /** What the surrounding form carries as `postern-pass`; empty until a code passed. */
  get pass(): string {
    return this.#field?.pass() ?? ''
  }

  /** Hands in a vendor's token after the event `challenge`. */
  answer(token: string): void {
    this.#field?.answer(token)
  }

  /** Begins anew, as if nothing had been sent. */
  reset(): void {
    this.#field?.reset()
  }
}

export * from './client.ts'
export { type AltchaChallenge, solveChallenge, UnsolvableError } from './proof-of-work.ts'
export type { TextName, Texts } from './texts.ts'

if (globalThis.customElements && !customElements.get('postern-code')) {
  customElements.define('postern-code', PosternCode)
}

declare global {
  interface HTMLElementTagNameMap {
    'postern-code': PosternCode
  }
}
