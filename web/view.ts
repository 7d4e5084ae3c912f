/**
 * The elements of the field. They are ordinary elements of the page, not of a shadow root, so that password managers and
 * autofill find the inputs. Both steps have the same size, so nothing moves between them.
 */
import { createAddressStep } from './address-step.ts'
import { createCodeStep } from './code-step.ts'
import { add, set, setAttributes, setEnabled } from './elements.ts'
import type { Shown } from './shown.ts'

export type View = ReturnType<typeof createView>

let count = 0

/** Reports to the browser why the form can't be sent yet (empty: it can), and the input that a person would correct. */
export type SetMissing = (message: string, entry: HTMLElement) => void

export function createView(host: HTMLElement, setMissing: SetMissing) {
  const prefix = `postern-${++count}`
  const root = add(host, 'div', 'postern-field')
  const addressStep = createAddressStep(root, prefix)
  const codeStep = createCodeStep(root, prefix)
  const { address, country, send } = addressStep
  const { code, isUnfinished } = codeStep

  // A screen reader reads each new sentence by itself.
  const status = { id: `${prefix}-message`, role: 'status', 'aria-atomic': 'false' }
  const line = add(root, 'p', 'postern-message', status)
  const said = add(line, 'span', '', { dir: 'auto' })
  const message = add(said, 'span', '')
  const note = add(said, 'span', '')
  const links = add(root, 'div', 'postern-links')
  const again = add(links, 'button', 'postern-link postern-again', { type: 'button' })
  const other = add(links, 'button', 'postern-link', { type: 'button' })
  const change = add(links, 'button', 'postern-link', { type: 'button' })
  const challenge = add(root, 'div', 'postern-challenge')
  const carried = ['pass', 'channel', 'to'].map((name) =>
    add(root, 'input', '', { type: 'hidden', name: `postern-${name}` }),
  )

  let entry: HTMLElement = address
  let missing: string | undefined

  return {
    address,
    country,
    send,
    code,
    isUnfinished,
    again,
    other,
    change,
    challenge,
    /** Writes the pass and its recipient into the form, for the server of the site. Without them, the form has none. */
    carry(...values: [] | [pass: string | undefined, channel: string, to: string]): void {
      for (const [index, input] of carried.entries()) input.value = values[index] ?? ''
    },
    pass: () => carried[0]?.value ?? '',
    entry: () => entry,
    keepInSight: () => keepInSight(line),

    /** Moves the focus, unless the person is already in another part of the page. */
    focus(element: HTMLElement): void {
      // Firefox keeps the focus for a moment on a part that is hidden now, and then it is not "within".
      const { activeElement } = host.getRootNode() as Document
      if (!activeElement || activeElement === document.body || host.contains(activeElement))
        element.focus()
    },

    render(shown: Shown): void {
      const { step, tone, isBusy, isPassed, canLeave } = shown
      setAttributes(root, { 'data-step': step, 'data-tone': tone, 'aria-busy': String(isBusy) })
      root.classList.toggle('postern-passed', isPassed)
      addressStep.render(shown)
      codeStep.render(shown)
      set(message, shown.message)
      set(note, shown.note)
      drawLink(again, shown.again, shown.canSend)
      drawLink(other, shown.other, canLeave)
      drawLink(change, shown.change, canLeave)
      const next = step === 'code' ? code : shown.given === undefined ? address : send
      if (next === entry && shown.missing === missing) return
      entry = next
      missing = shown.missing
      setMissing(missing, entry)
    },
  }
}

/** Scrolls as little as possible. A phone's keyboard hides a part of the window from `scrollIntoView`. */
function keepInSight(element: HTMLElement): void {
  element.scrollIntoView({ block: 'nearest', behavior: 'instant' })
  const { offsetTop, height } = visualViewport as VisualViewport
  const hiddenPx = element.getBoundingClientRect().bottom - offsetTop - height
  if (hiddenPx > 0) scrollBy({ top: hiddenPx, behavior: 'instant' })
}

function drawLink(link: HTMLElement, text: string | undefined, isEnabled: boolean): void {
  set(link, text ?? '')
  link.hidden = text === undefined
  setEnabled(link, isEnabled)
}
