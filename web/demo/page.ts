/** The demo page: connects the code field, the devices, the lanes of the limiter and the trials with the demo server. */
import { createPosternClient } from '../client.ts'
import type { PosternCode } from '../postern-code.ts'
import type { DemoState } from './demo-state.ts'
import { codeIn, drawDevices } from './devices.ts'
import { byId, isCalm, setText } from './elements.ts'
import { createHand } from './hand.ts'
import { createSelfPlay } from './self-play.ts'
import { followState, tellServer } from './server.ts'
import { startTag } from './tag.ts'
import { text } from './texts.ts'
import { drawLimits } from './timeline.ts'
import { createTrials, type TrialName } from './trials.ts'

const visitor = { sms: '+8613800138000', email: 'ada@example.com' }
const frameMs = 100
const calmFrameMs = 1_000

const field = document.querySelector('postern-code') as PosternCode
await customElements.whenDefined('postern-code')
const hand = createHand(field)
hand.suggest(visitor)
field.addEventListener('click', () => hand.suggest(visitor))
startTag(field, visitor)

// Lists that scroll must be reachable by keyboard.
for (const list of document.querySelectorAll<HTMLElement>('.scroll')) list.tabIndex = 0

let state: DemoState | null = null
let readAtMs = 0
function show(next: DemoState): void {
  state = next
  readAtMs = performance.now()
  drawDevices(next, next.nowMs)
  draw()
}

const selfPlay = createSelfPlay({
  ...{ hand, isCalm, show },
  onEnd() {
    hand.suggest(visitor)
    server.ask()
  },
})
const server = followState((next) => {
  if (!next || selfPlay.covers(next)) return
  show(next)
  drawFills(next)
  drawProviderTrials(next)
})

/** Draws the lanes. Between two answers, the time of the server is estimated. */
function draw(): void {
  if (state) drawLimits(state, state.nowMs + performance.now() - readAtMs)
}
setInterval(() => document.hidden || draw(), isCalm ? calmFrameMs : frameMs)

const fills = document.querySelectorAll<HTMLElement>('.fill')

/** Offers to fill in the code of a new message, as the keyboard of a phone does. */
function drawFills({ messages }: DemoState): void {
  const newest = messages.find(({ to }) => digitsOf(to) === digitsOf(hand.address()))
  const code = newest && hand.wantsCode() ? codeIn(newest) : undefined
  for (const fill of fills) {
    fill.hidden = !code || (newest?.channel === 'email') !== (fill.dataset.channel === 'email')
    if (fill.hidden || !code) continue
    fill.dataset.code = code
    setText(fill, text('fill', { code }))
  }
}
/** Makes two spellings of an address comparable. */
const digitsOf = (to: string) => to.replace(/[\s()-]/g, '').toLowerCase()

for (const fill of fills) {
  fill.addEventListener('click', () => hand.type(fill.dataset.code ?? ''))
}

/** The same button switches the provider off and on. Both trials need the demo's own providers. */
function drawProviderTrials({ provider }: DemoState): void {
  const button = document.querySelector('[data-trial=provider]') as HTMLElement
  const isOff = provider?.isOff ?? false
  button.hidden = provider === null
  const call = document.querySelector('[data-trial=call]') as HTMLElement
  call.hidden = provider === null
  setText(button.querySelector('b'), text(isOff ? 'providerOn' : 'provider'))
  setText(button.querySelector('span'), text(isOff ? 'providerOnHint' : 'providerHint'))
}

for (const type of ['sent', 'passed', 'refused']) field.addEventListener(type, () => server.ask())
field.addEventListener('sent', () => setText(byId('signed-up'), ''))

byId('start-over').addEventListener('click', () =>
  orSayWhy(async () => {
    await tellServer('start-over')
    hand.reset()
    setText(byId('signed-up'), '')
    await server.ask()
  }),
)

byId('console').addEventListener('click', () =>
  orSayWhy(async () => {
    const { path } = (await tellServer('console')) as { path: string }
    open(path, '_blank')
  }),
)

async function orSayWhy(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch {
    setText(byId('signed-up'), text('noAnswer'))
  }
}

const play = createTrials({
  hand,
  client: createPosternClient({ src: location.origin, key: field.getAttribute('key') ?? '' }),
  server,
})
for (const button of document.querySelectorAll<HTMLElement>('[data-trial]')) {
  button.addEventListener('click', () => play(button.dataset.trial as TrialName))
}

// Sends the form as the page of a shop would, but stays on this page.
byId<HTMLFormElement>('sign-up').addEventListener('submit', (event) => {
  event.preventDefault()
  const form = new FormData(byId<HTMLFormElement>('sign-up'))
  const [pass, channel, to] = ['pass', 'channel', 'to'].map((name) => form.get(`postern-${name}`))
  void orSayWhy(async () => {
    const { valid } = (await tellServer('sign-up', { pass, channel, to })) as { valid?: boolean }
    setText(byId('signed-up'), text(valid ? 'welcome' : 'notWelcome'))
    if (!valid) hand.reset()
  })
})
