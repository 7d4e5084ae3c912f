/**
 * Plays the recording of a real visit until the visitor touches the page. In this visit, a second request is refused.
 * It sends no requests, so it uses up no limits and leaves nothing behind. `test/dev/demo.slow.test.ts` makes the
 * recording, and compares it with what the demo does.
 */
import type { DemoState } from './demo-state.ts'
import { byId, setText } from './elements.ts'
import type { Hand } from './hand.ts'
import recording from './recording.json' with { type: 'json' }
import { type TextName, text } from './texts.ts'

const keyMs = 120
const readMs = 2_000
const touches = ['pointerdown', 'keydown', 'focusin'] as const
/** Three states: before the first request, after its message arrived, and after the second request was refused. */
const frames = recording as unknown as readonly [DemoState, DemoState, DemoState]

/** `onEnd` is called once, even if nothing was played. `isCalm`: shows whole steps, without typing each character. */
export function createSelfPlay(deps: {
  hand: Hand
  isCalm: boolean
  show: (state: DemoState) => void
  onEnd: () => void
}) {
  const { hand, isCalm, show, onEnd } = deps
  const ending = new AbortController()
  const { signal } = ending
  const live = document.querySelectorAll('[aria-live]')
  let isPlaying = false
  let real: DemoState | undefined

  function end(): void {
    if (signal.aborted) return
    ending.abort()
    if (isPlaying) {
      for (const region of live) region.ariaLive = 'polite'
      setText(byId('playing'), '')
      hand.show('')
    }
    if (real) show(real)
    onEnd()
  }
  for (const touch of touches) addEventListener(touch, end, { capture: true, signal })

  async function play(): Promise<void> {
    isPlaying = true
    // A screen reader would read each repetition aloud.
    for (const region of live) region.ariaLive = 'off'
    const to = frames[1].followed?.to ?? ''
    for (;;) {
      showStep(0, 'playTypes')
      for (let typed = isCalm ? to.length : 3; typed <= to.length; typed++) {
        hand.show(to.slice(0, typed))
        await pause(keyMs)
      }
      await pause(readMs)
      hand.press()
      showStep(1, 'playArrives')
      await pause(frames[2].nowMs - frames[1].nowMs)
      hand.press()
      showStep(2, 'playRefused')
      await pause(3 * readMs)
    }
  }

  function showStep(step: 0 | 1 | 2, words: TextName): void {
    const { worker = frames[0].worker, provider = null } = real ?? {}
    show({ ...movedTo(Date.now(), frames[step]), worker, provider })
    setText(byId('playing'), text(words))
  }

  async function pause(ms: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, ms))
    signal.throwIfAborted()
  }

  return {
    /** Called with each state of the server. True while the page shows the recording and not this state. */
    covers(state: DemoState): boolean {
      real = state
      if (state.decisions.length > 0 || hand.wantsCode() || !isSamePolicy(state)) end()
      if (!signal.aborted && !isPlaying) {
        play().catch((error) => {
          if (!signal.aborted) throw error
        })
      }
      return !signal.aborted
    },
  }
}

/** True if the recording was made with the current rules. With other rules it would be wrong. */
const isSamePolicy = ({ lanes }: DemoState) => rulesOf(lanes) === rulesOf(frames[0].lanes)
const rulesOf = (lanes: DemoState['lanes']) =>
  JSON.stringify(
    lanes.map(({ policy, rule, mode, window, limit }) => [policy, rule, mode, window, limit]),
  )

/** The recorded state, as if it were read at `nowMs`, with its message in the language of the page. */
function movedTo(nowMs: number, frame: DemoState): DemoState {
  const laterMs = nowMs - frame.nowMs
  return JSON.parse(JSON.stringify(frame), (name, value) => {
    if (name === 'text') return text('played', { code: /\d+/.exec(value)?.[0] ?? '' })
    if (name === 'takenAtMs') return value.map((atMs: number) => atMs + laterMs)
    if (name === 'atMs' || name === 'nowMs') return value + laterMs
    const isTime = typeof value === 'string' && (name === 'at' || name.endsWith('At'))
    return isTime ? new Date(Date.parse(value) + laterMs).toISOString() : value
  })
}
