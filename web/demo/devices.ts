/** The phone, the mailbox, and the timeline of each message. */

import type { DemoState, Message, Notice } from './demo-state.ts'
import { byId, drawList, make, nudge, setText } from './elements.ts'
import { clock, duration, text } from './texts.ts'

/** The code as its message writes it. A call reads its digits one by one. */
const writtenCodeIn = ({ text }: Message) => /(?<!\d)(\d(, )?){4,10}(?!\d)/.exec(text)?.[0]

export const codeIn = (message: Message) => writtenCodeIn(message)?.replaceAll(', ', '')

export function drawDevices(
  { messages, notices, worker, provider }: DemoState,
  nowMs: number,
): void {
  // The oldest stands at the top, as on a phone.
  const sent = messages.filter(({ channel }) => channel !== 'email')
  // The phone shows one number: the number of the newest message.
  const texts = sent
    .filter(({ to }) => to === sent[0]?.to)
    .slice(0, 3)
    .reverse()
  const mails = messages.filter(({ channel }) => channel === 'email').slice(0, 5)
  const hadTexts = byId('texts').lastElementChild
  drawList(byId('texts'), texts, ({ id }) => id, buildText, undefined, text('noTexts'))
  if (byId('texts').lastElementChild !== hadTexts) {
    byId('texts').scrollTop = byId('texts').scrollHeight
    if (hadTexts) nudge(byId('phone'), { translate: ['0', '-3px', '3px', '-3px', '3px', '0'] })
  }
  setText(byId('phone-to'), texts.at(-1)?.to ?? '')
  drawList(byId('mails'), mails, ({ id }) => id, buildMail, undefined, text('noMails'))
  drawList(
    byId('ways'),
    notices,
    ({ id }) => id,
    buildWay,
    (element, notice) => updateWay(element, notice, nowMs),
    text('noWays'),
  )
  drawWorker(worker)
  const providerState = byId('provider-state')
  providerState.hidden = provider === null
  if (!provider) return
  providerState.dataset.tone = provider.isOff ? 'bad' : 'good'
  setText(
    providerState,
    text(provider.isOff ? 'providerAway' : 'providerOkay', { name: provider.name }),
  )
}

function drawWorker(worker: DemoState['worker']): void {
  const pill = byId('worker-state')
  pill.dataset.tone = { ready: 'good', starting: 'plain', down: 'bad' }[worker.kind]
  const words =
    worker.kind === 'down'
      ? text('workerDown', { time: duration(Math.ceil(worker.restartsInMs / 1_000) * 1_000) })
      : text(worker.kind === 'ready' ? 'workerReady' : 'workerStarting', {
          pid: String(worker.pid),
        })
  setText(pill, words)
}

function buildText(message: Message): HTMLElement {
  return make('li', 'bubble', [make('p', '', withCode(message)), footOf(message)])
}

function buildMail(message: Message): HTMLElement {
  return make('li', 'letter', [
    make('p', 'subject', message.subject ?? ''),
    make('p', 'sub', message.to),
    make('p', '', withCode(message)),
    footOf(message),
  ])
}

const footOf = ({ sentAt, provider }: Message) =>
  make('p', 'foot', `${clock(Date.parse(sentAt))} · ${text('via', { provider })}`)

/** The text of a message, with the code in bold and its link. */
function withCode(message: Message): Node[] {
  const code = writtenCodeIn(message)
  const [before = '', ...after] = code ? message.text.split(code) : [message.text]
  const rest = code ? [make('strong', '', code), ...withLink(after.join(code))] : []
  return [new Text(before), ...rest]
}

/** The link opens this page, whichever name of this machine the visitor uses. */
function withLink(text: string): Node[] {
  const [link = '', fragment = ''] = /https?:\S+(#postern-code=\S+)/.exec(text) ?? []
  if (!link) return [new Text(text)]
  const anchor = make('a', '', link)
  anchor.setAttribute('href', fragment)
  const [before = '', after = ''] = text.split(link)
  return [new Text(before), anchor, new Text(after)]
}

function buildWay({ to, channel }: Notice): HTMLElement {
  return make('li', 'way', [make('p', 'to', to ?? channel), make('p', 'steps')])
}

function updateWay(element: HTMLElement, notice: Notice, nowMs: number): void {
  const { attempts, createdAt, sentAt, finishedAt, state } = notice
  const steps = [step(text('accepted'), 'good')]
  for (const { provider, outcome } of attempts) {
    const isGood = outcome === 'accepted'
    steps.push(step(`${provider ?? '?'} ${isGood ? '✓' : `✗ ${outcome}`}`, isGood ? 'good' : 'bad'))
  }
  const isOpen = state === 'pending' || state === 'sending'
  const endedMs = isOpen ? nowMs : Date.parse(sentAt ?? finishedAt ?? createdAt)
  const time = duration(Math.max(0, endedMs - Date.parse(createdAt)))
  steps.push(
    isOpen
      ? step(text('waiting', { time }), 'plain')
      : step(`${text(state)} · ${text('arrived', { time })}`, sentAt ? 'good' : 'bad'),
  )
  const holder = element.querySelector('.steps') as HTMLElement
  const words = (nodes: Iterable<Node>) =>
    [...nodes].map(({ textContent }) => textContent).join('|')
  if (words(holder.childNodes) !== words(steps)) holder.replaceChildren(...steps)
}

function step(words: string, tone: 'good' | 'bad' | 'plain'): HTMLElement {
  const element = make('span', 'badge', words)
  element.dataset.tone = tone
  return element
}
