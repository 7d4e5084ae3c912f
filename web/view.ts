/**
 * The elements of the field. They are ordinary elements of the page, not of a shadow root, so that password managers and
 * autofill find the inputs. Both steps have the same size, so nothing moves between them.
 */
import { createCodeStep } from './code-step.ts'
import { add } from './elements.ts'

export type View = ReturnType<typeof createView>

let count = 0

/** Reports to the browser why the form can't be sent yet (empty: it can), and the input that a person would correct. */
export type SetMissing = (message: string, entry: HTMLElement) => void

export function createView(host: HTMLElement, setMissing: SetMissing) {
  const prefix = `postern-${++count}`
  const root = add(host, 'div', 'postern-field')
  const addressStep = createAddressStep(root, prefix)
  const codeStep = createCodeStep(root, prefix)

  // A screen reader reads each new sentence by itself.
  const status = { id: `${prefix}-message`, role: 'status', 'aria-atomic': 'false' }
  const line = add(root, 'p', 'postern-message', status)
  const said = add(line, 'span', '', { dir: 'auto' })
  const message = add(said, 'span', '')
  const note = add(said, 'span', '')
  const links = add(root, 'div', 'postern-links')
  const link = (more = '') => add(links, 'button', `postern-link${more}`, { type: 'button' })
  const challenge = add(root, 'div', 'postern-challenge')
  const carried = ['pass', 'channel', 'to'].map((name) =>
    add(root, 'input', '', { type: 'hidden', name: `postern-${name}` }),
  )

  let entry: HTMLElement = addressStep.address
  let missing: string | undefined

  return {
    ...addressStep,
    ...codeStep,
    root,
    message,
    note,
    again: link(' postern-again'),
    change: link(),
    // The last one, because it appears when a wait ends, and must not push a link away from the pointer.
    other: link(),
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

    /** `next`: the input or button of the step. `why`: why the form can't be sent yet. */
    setEntry(next: HTMLElement, why: string): void {
      if (next === entry && why === missing) return
      entry = next
      missing = why
      setMissing(why, entry)
    },
  }
}

/** The input for the phone number or mail address, with the country before it. */
function createAddressStep(root: Element, prefix: string) {
  const step = add(root, 'div', 'postern-step')
  const addressLabel = add(step, 'label', 'postern-label', { for: `${prefix}-to` })
  const givenLabel = add(step, 'p', 'postern-label', { id: `${prefix}-given` })
  // A country stands before its number in every language.
  const toLine = add(step, 'div', 'postern-to', { dir: 'ltr' })
  const countryBox = add(toLine, 'div', 'postern-country')
  return {
    addressLabel,
    givenLabel,
    toLine,
    countryBox,
    countryPrefix: add(countryBox, 'span', 'postern-prefix', { id: `${prefix}-country` }),
    country: add(countryBox, 'select', 'postern-countries', { autocomplete: 'off' }),
    address: add(toLine, 'input', 'postern-input', {
      id: `${prefix}-to`,
      dir: 'auto',
      maxlength: '254',
      spellcheck: 'false',
      'aria-describedby': `${prefix}-country ${prefix}-message`,
    }),
    send: add(step, 'button', 'postern-button', {
      type: 'button',
      'aria-describedby': `${prefix}-given`,
    }),
  }
}

/** Scrolls as little as possible. A phone's keyboard hides a part of the window from `scrollIntoView`. */
function keepInSight(element: HTMLElement): void {
  element.scrollIntoView({ block: 'nearest', behavior: 'instant' })
  const { offsetTop, height } = visualViewport as VisualViewport
  const hiddenPx = element.getBoundingClientRect().bottom - offsetTop - height
  if (hiddenPx > 0) scrollBy({ top: hiddenPx, behavior: 'instant' })
}
