/** The frame around every page: head, navigation, sign-out and footer. */
import { type Html, html } from '../base/html.ts'
import { words as allWords, type Language, languageName, languages } from '../base/words.ts'
import type { ConsoleWords, NavName, Page, View } from './page.ts'
import { csrfField } from './parts.ts'

/** Paths with a hash of the bytes, so that browsers can cache the files for ever. */
export interface AssetPaths {
  style: string
  script: string
  picture: string
}

interface Around {
  language: Language
  assets: AssetPaths
  /** Absent on the sign-in page. */
  view: View | undefined
  here: string
}

const paths: Readonly<Record<NavName, string>> = {
  home: '/',
  notices: '/notices',
  delivery: '/delivery',
  rules: '/rules',
  keys: '/keys',
  events: '/events',
  operations: '/operations',
}

export function frame(
  { title, body, nav, refreshMs }: Page,
  { language, assets, view, here }: Around,
): string {
  const { tag, console: words } = allWords[language]
  return html`<!doctype html>
<html lang="${tag}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · ${words.name}</title>
<link rel="icon" href="${assets.picture}">
<link rel="stylesheet" href="${assets.style}">
<script type="module" src="${assets.script}"></script>
</head>
<body>
<a class="skip" href="#main">${words.skip}</a>
<header class="top">
<a class="brand" href="/"><img src="${assets.picture}" width="28" height="28" alt="">Postern</a>
${view && navigation(words, nav)}
<div class="account">
<nav aria-label="${words.language}"><ul>${otherLanguages(here, language)}</ul></nav>
${view && signedIn(view)}
</div>
</header>
<main id="main" tabindex="-1"${refreshMs !== undefined && html` data-refresh-ms="${refreshMs}"`}>
${body}
</main>
<footer><p data-zone="${words.zone}">${words.utc}</p><p data-stale="${words.stale}" role="status"></p></footer>
</body>
</html>
`.toString()
}

function navigation(words: ConsoleWords, current: NavName | undefined): Html {
  const names = Object.keys(paths) as NavName[]
  const links = names.map(
    (name) =>
      html`<li><a href="${paths[name]}"${name === current && html` aria-current="page"`}>${words.nav[name]}</a></li>`,
  )
  return html`<nav aria-label="${words.name}"><ul>${links}</ul></nav>`
}

const signedIn = (
  view: View,
): Html => html`<span class="key-name"><span class="unseen">${view.words.signIn.label}: </span>${view.operator.name}</span>
<form method="post" action="/sign-out">${csrfField(view)}
<button class="link">${view.words.signOut}</button></form>`

const otherLanguages = (here: string, current: Language): Html[] =>
  languages
    .filter((language) => language !== current)
    .map((language) => {
      const { tag } = allWords[language]
      return html`<li><a href="${inLanguage(here, language)}" lang="${tag}" hreflang="${tag}">${languageName(language)}</a></li>`
    })

/** The path of the same page in another language. */
function inLanguage(here: string, language: Language): string {
  const [path = '', search = ''] = here.split('?', 2)
  const query = new URLSearchParams(search)
  query.set('language', language)
  // A path that begins with two slashes would name another host.
  return `/${path.replace(/^\/+/, '')}?${query}`
}
