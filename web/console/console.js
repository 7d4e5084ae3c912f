/**
 * The only script of the console; every page works without it. It refreshes the page and shows times in the browser's
 * time zone.
 *
 * A visible page requests itself every few seconds and copies the changes. Without answers it slows down, and while it is
 * hidden it stops. It does not change forms, opened sections or a page with selected text.
 */
import { Idiomorph } from './idiomorph.js'

const main = document.querySelector('main')
const stale = document.querySelector('[data-stale]')
const refreshMs = Number(main.dataset.refreshMs)
const longestPauseMs = 60_000
const answerWithinMs = 10_000

// Writes times in the form of the server, but in the browser's zone: 2026-11-23 09:30:00.
const dateAndTime = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium' })

function writeTimes(root) {
  for (const element of root.querySelectorAll('time[datetime]')) {
    element.textContent = dateAndTime.format(new Date(element.dateTime))
  }
  for (const element of root.querySelectorAll('[data-zone]')) {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
    element.textContent = `${element.dataset.zone} ${timeZone}`
  }
}

const callbacks = {
  // A form keeps what the reader has typed and chosen.
  beforeNodeMorphed: (node) => !(node instanceof Element && 'keep' in node.dataset),
  beforeAttributeUpdated: (name, element) => !(name === 'open' && element.matches('details')),
}

let failures = 0
let answeredAt = new Date()
let timer

function schedule() {
  clearTimeout(timer)
  if (document.hidden) return
  timer = setTimeout(refresh, Math.min(refreshMs * 2 ** failures, longestPauseMs))
}

async function refresh() {
  try {
    if (document.getSelection()?.isCollapsed !== false) await takeOver()
    failures = 0
    answeredAt = new Date()
    stale.textContent = ''
  } catch {
    failures += 1
    stale.textContent = `${stale.dataset.stale} ${dateAndTime.format(answeredAt)}`
  }
  schedule()
}

async function takeOver() {
  const response = await fetch(location.href, { signal: AbortSignal.timeout(answerWithinMs) })
  // The session ended, or the page has another address: follow the redirect.
  if (response.redirected) return location.assign(response.url)
  if (!response.ok) throw new Error(String(response.status))
  const next = new DOMParser().parseFromString(await response.text(), 'text/html')
  // Another tab signed in again: the forms of this page, and the name above it, belong to the ended session.
  if (tokenIn(next) !== tokenIn(document)) return location.reload()
  writeTimes(next)
  Idiomorph.morph(main, next.querySelector('main').innerHTML, {
    morphStyle: 'innerHTML',
    ignoreActiveValue: true,
    callbacks,
  })
}

const tokenIn = (page) => page.querySelector('[name="csrf"]')?.value

writeTimes(document)
if (refreshMs > 0) {
  schedule()
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) clearTimeout(timer)
    else refresh()
  })
}
document.addEventListener('keydown', (event) => {
  const isTyping = event.target instanceof HTMLElement && event.target.matches('input, select')
  const field = document.querySelector('[data-slash]')
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || !field) return
  event.preventDefault()
  field.focus()
})
