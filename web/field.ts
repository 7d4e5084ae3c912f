/**
 * One field: reads an address, sends a code there, reads the typed code, and asks the service to check it. The `state`
 * of its screen holds all it knows, and each change of the state is drawn at once.
 *
 * The service decides about waits, tries and challenges. The field only shows these decisions: a browser can't be
 * trusted, so nothing here protects the service.
 */
import { createChecking } from './checking.ts'
import { createCodeLink } from './code-link.ts'
import type { Tell } from './events.ts'
import { watchForm } from './form.ts'
import { createLanguage } from './language.ts'
import { createMemory } from './memory.ts'
import { createMoves } from './moves.ts'
import { watchNumber } from './number-entry.ts'
import { createRefused } from './refused.ts'
import { createScreen } from './screen.ts'
import { createSending } from './sending.ts'
import type { Settings } from './settings.ts'
import { isFilled, lockMsOf } from './state.ts'
import { fill, type TextName, type TextOf } from './texts.ts'
import { createView, type SetMissing, type View } from './view.ts'
import { createWork } from './work.ts'

export type Field = ReturnType<typeof createField>

export function createField(
  host: HTMLElement,
  settings: Settings,
  /** A text that the page replaces. */
  ownTextOf: (name: TextName) => string | null | undefined,
  setMissing: SetMissing,
) {
  const view = createView(host, setMissing)
  const textIn = createLanguage(settings, view.root, () => screen.redraw())
  const text: TextOf = (name, values) => fill(ownTextOf(name) ?? textIn(name), values)
  const screen = createScreen(view, settings, text, () => void sending.askForWay())
  const memory = createMemory(screen, settings)
  const tell: Tell = (type, detail) =>
    host.dispatchEvent(new CustomEvent(type, { detail, bubbles: true }))
  const work = createWork(view, screen, tell)
  const refused = createRefused({ settings, screen, memory, tell })
  const parts = { settings, view, screen, memory, work, tell, refused }
  const { state, change, complain, redraw, follow } = screen

  const link = createCodeLink(parts)
  const checking = createChecking({
    ...parts,
    onPassed() {
      link.stop()
      // A listener of the page may have reset the field.
      if (settings.isAutosubmit && state.isPassed) form.submit()
    },
  })
  const moves = createMoves({ ...parts, checking, link })
  const sending = createSending({
    ...parts,
    onSent(channel) {
      link.listen()
      if (channel === 'sms') checking.readMessage()
    },
  })
  const send = () => sending.send()
  const press = () => (isFilled(state) ? checking.check() : send())
  const goOn = () => (state.sent?.way ? sending.send(true) : moves.switchChannel())
  watchButtons(view, { press, send, goOn, ...moves })
  watchNumber(view, screen)
  watchCode(view, checking)
  const watch = () =>
    watchForm(host, {
      held() {
        if (state.busyWith) return
        // A lock is shown with its end.
        if (!lockMsOf(state, screen.addressOf()))
          complain('required', state.sent ? 'code' : 'address')
        const entry = state.sent ? view.code : (screen.givenNow()?.input ?? view.entry())
        entry.focus()
        view.keepInSight()
        // A check without an answer left a complete code. A phone's keyboard may have no Enter to repeat it.
        checking.check()
      },
      keyboardMoved: () =>
        state.message?.tone === 'wrong' && host.matches(':focus-within') && view.keepInSight(),
      linkOpened: link.take,
      online: () => state.message?.name === 'offline' && change({ message: undefined }),
      pageTyped: follow,
      // The pass is already used, so the field starts again.
      shownAgain: () => state.isPassed && moves.reset(),
      textsChanged: redraw,
    })
  let form = watch()
  moves.begin()

  return {
    ...moves,
    answer: work.answer,
    redraw,
    follow,
    /** The element has another place in the page, perhaps in another form. */
    rewatch(): void {
      form.stop()
      form = watch()
      redraw()
    },
    pass: view.pass,
    remove(): void {
      moves.stop()
      form.stop()
    },
  }
}

function watchButtons(
  { send, again, other, change, address }: View,
  on: { press(): void; send(): void; goOn(): void; changeAddress(): void },
): void {
  send.addEventListener('click', on.press)
  again.addEventListener('click', on.send)
  other.addEventListener('click', on.goOn)
  change.addEventListener('click', on.changeAddress)
  address.addEventListener('keydown', (event) => onEnter(event, on.send))
}

function watchCode(
  { code, isUnfinished }: View,
  on: { check(): void; codeTyped(written: string): void; textPasted(text: string): void },
): void {
  code.addEventListener('keydown', (event) => onEnter(event, on.check))
  // Some keyboards send no input event after the end of a composition.
  for (const type of ['input', 'compositionend']) {
    code.addEventListener(type, () => isUnfinished() || on.codeTyped(code.value))
  }
  // A keyboard may insert a whole text or a suggested code, which `maxlength` would cut.
  code.addEventListener('beforeinput', (event) => {
    const { data, isComposing } = event
    const hasRoom = !data?.[1] || data.length <= code.maxLength - code.value.length
    // The browser inserts a composition in any case.
    if (hasRoom || isComposing) return
    event.preventDefault()
    on.textPasted(data)
  })
  // `maxlength` would cut "Your code: 12 34" before its digits.
  const paste = (event: Event, data: DataTransfer | null) => {
    event.preventDefault()
    on.textPasted(data?.getData('text') ?? '')
  }
  code.addEventListener('paste', (event) => paste(event, event.clipboardData))
  code.addEventListener('drop', (event) => paste(event, event.dataTransfer))
}

/** Runs `run` on Enter, and keeps Enter from sending the surrounding form. */
function onEnter(event: KeyboardEvent, run: () => void): void {
  // Safari ends a composition before its Enter, which has this key code there.
  if (event.key !== 'Enter' || event.isComposing || event.keyCode === 229) return
  event.preventDefault()
  run()
}
