/** The search field: large on the first page, small above each story (`of`). In a story, an empty field keeps the recipient. */
import { type Html, html } from '../base/html.ts'
import type { View } from './page.ts'
import { csrfField, icon } from './parts.ts'

export function searchForm(
  view: View,
  { asked = '', problem, of }: { asked?: string; problem?: string | undefined; of?: string },
): Html {
  const { search } = view.words
  const isLarge = of === undefined
  const described = problem === undefined ? 'q-hint' : 'q-problem q-hint'
  return html`<form class="search${isLarge && ' large'}" method="post" action="/search" role="search" data-keep>
${csrfField(view)}${of !== undefined && html`<input type="hidden" name="of" value="${of}">`}
<label for="q">${search.label}</label>
<div class="row"><input id="q" name="q" value="${asked}" placeholder="${search.placeholder}"${isLarge && html` required`} maxlength="400"
 autocomplete="off" autocapitalize="none" spellcheck="false" aria-describedby="${described}" data-slash${isLarge && html` autofocus`}${problem !== undefined && html` aria-invalid="true"`}>
<button>${search.button}</button></div>
${problem !== undefined && html`<p class="problem" id="q-problem">${icon('cross')}${problem}</p>`}
<p class="hint" id="q-hint">${search.hint}</p>
<details><summary>${search.more}</summary>
<label for="ip">${search.ip}</label><input id="ip" name="ip" maxlength="100" autocomplete="off" aria-describedby="ip-hint">
<p class="hint" id="ip-hint">${search.ipHint}</p></details>
</form>`
}
