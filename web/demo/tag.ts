/** "Copy this tag": the tag of this page's field, and the same request with curl, for this machine. */
import type { Channel } from '../client.ts'
import { byId, setText } from './elements.ts'
import { text } from './texts.ts'

type Choice = Readonly<Record<'kind' | 'channels' | 'lang' | 'theme', string>>

export function startTag(
  field: HTMLElement,
  visitor: Readonly<Partial<Record<Channel, string>>>,
): void {
  const form = byId<HTMLFormElement>('tag')
  const copy = byId('copy')
  const src = location.origin
  const key = field.getAttribute('key')
  const script = document.querySelector<HTMLScriptElement>('script[src^="/browser/"]')?.src

  const written = {
    tag({ channels, lang, theme }: Choice) {
      const more = [
        ...(lang ? [`lang="${lang}"`] : []),
        ...(theme ? [`style="color-scheme: ${theme}"`] : []),
      ]
      return `<script type="module" src="${script}"></script>
<postern-code ${[`src="${src}"`, 'scene="signup"', `channels="${channels}"`, ...more].join(' ')} key="${key}"></postern-code>`
    },
    fetch: (choice: Choice) => `await fetch('${src}/v1/captchas', {
  method: 'POST',
  headers: {
    authorization: 'Bearer ${key}',
    'content-type': 'application/json',
  },
  body: JSON.stringify(${bodyOf(choice)}),
})`,
    curl: (choice: Choice) => `curl ${src}/v1/captchas \\
  -H 'Authorization: Bearer ${key}' \\
  -H 'Origin: ${src}' -H 'Content-Type: application/json' \\
  -d '${bodyOf(choice)}'`,
  }

  function bodyOf({ channels, lang }: Choice): string {
    const channel: Channel = channels === 'email' ? 'email' : 'sms'
    const locale = lang ? { locale: lang } : {}
    return JSON.stringify({ channel, to: visitor[channel], scene: 'signup', ...locale })
  }

  function draw(): void {
    const choice = Object.fromEntries(new FormData(form)) as unknown as Choice
    // A request has no theme to choose.
    form.theme.disabled = choice.kind !== 'tag'
    setText(byId('tag-code'), written[choice.kind as keyof typeof written](choice))
    setText(copy, text('copy'))
  }

  form.addEventListener('change', draw)
  copy.addEventListener('click', async () => {
    await navigator.clipboard.writeText(byId('tag-code').textContent)
    setText(copy, text('copied'))
  })
  draw()
}
