/**
 * The texts in the language of the page. The script has only the English ones that a field always needs, because it must
 * stay small. The field brings the others from its service. A page needs no other permission for that than for a send, and a
 * bundler packs nothing. The texts are data and are shown as text, like the recipient in an answer, so they need no hash.
 */
import { english, languageNames, type TextName } from './bundled-texts.ts'
import { baseOf } from './client.ts'
import type { Settings } from './settings.ts'

/** A field without texts shows English after this time. */
const maxHiddenMs = 1_000

type Brought = Readonly<Partial<Record<TextName, unknown>>>
const brought: Record<string, Promise<Brought>> = {}

/** English if the service does not have them, or does not answer. The next field asks again then. */
const bring = (url: string): Promise<Brought> =>
  (brought[url] ??= fetch(url, { credentials: 'omit' })
    .then((response) => (response.ok ? response.json() : Promise.reject()))
    .catch(() => {
      delete brought[url]
      return english
    }))

/**
 * `root` is hidden until the first texts arrive, unless they are English. A later language replaces the texts when it
 * arrives, so the person keeps the focus.
 */
export function createLanguage(settings: Settings, root: Element, onArrived: () => void) {
  let language = ''
  let texts: Brought | undefined

  return function textOf(name: TextName): string {
    follow()
    const text = texts?.[name]
    return typeof text === 'string' ? text : (english[name] ?? '')
  }

  function follow(): void {
    const named = settings.language.replace(/-.*/, '')
    const wanted = languageNames.includes(named) ? named : 'en'
    if (wanted === language) return
    language = wanted
    if (wanted === 'en') texts ??= english
    root.classList.toggle('postern-waiting', !texts)
    const arrived = (found: Brought) => {
      if (wanted !== language) return
      texts = found
      root.classList.remove('postern-waiting')
      onArrived()
    }
    void bring(`${baseOf(settings.src)}/browser/postern-code.${wanted}.json`).then(arrived)
    setTimeout(() => texts || arrived(english), maxHiddenMs)
  }
}
