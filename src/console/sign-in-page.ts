import { commandLine } from '../base/command-line.ts'
import { html } from '../base/html.ts'
import { fill, type Language, words } from '../base/words.ts'
import type { ConsoleWords, Page } from './page.ts'
import { icon } from './parts.ts'
import type { SignedIn } from './sign-in.ts'

/** The sign-in form. `next` is the requested page, `refused` the reason why the last key was refused. */
export function signInPage(language: Language, next: string | undefined, refused?: SignedIn): Page {
  const { signIn, name } = words[language].console
  const command = commandLine('keys', `create --kind operator --name ${signIn.you}`)
  const problem = refused && problemOf(signIn, refused)
  const body = html`<div class="card door"><h1>${name}</h1>
<form method="post" action="/login">
<input type="hidden" name="next" value="${next ?? '/'}">
<input name="username" value="operator" autocomplete="username" hidden>
<label for="key">${signIn.label}</label>
<input id="key" name="key" type="password" required maxlength="200" autocomplete="current-password" autofocus
 aria-describedby="${problem && 'key-problem '}key-hint"${problem && html` aria-invalid="true"`}>
${problem && html`<p class="problem" id="key-problem" role="alert">${icon('cross')}${problem}</p>`}
<p class="hint" id="key-hint">${fill(signIn.hint, language, { command })}</p>
<button>${signIn.button}</button></form></div>`
  const status = !refused ? 200 : refused.kind === 'wait' ? 429 : 401
  return { title: signIn.title, body, status }
}

function problemOf(signIn: ConsoleWords['signIn'], refused: SignedIn): string {
  if (refused.kind === 'wait') return signIn.wait
  return refused.kind === 'not_operator' ? signIn.notOperator : signIn.wrong
}
