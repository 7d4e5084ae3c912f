/** The input for the code, above one drawn box for each digit. */
import { add, set, setAttributes } from './elements.ts'
import type { State } from './state.ts'

export function createCodeStep(parent: Element, prefix: string) {
  const step = add(parent, 'div', 'postern-step')
  const codeTitle = add(step, 'label', 'postern-label', { for: `${prefix}-code` })
  const digits = add(step, 'div', 'postern-digits', { dir: 'ltr' })
  const code = add(digits, 'input', 'postern-code', {
    id: `${prefix}-code`,
    type: 'text',
    inputmode: 'numeric',
    autocomplete: 'one-time-code',
    'aria-describedby': `${prefix}-message`,
  })
  // Chromium puts the caret before the digits when a script moves the focus, after this event.
  for (const type of ['focus', 'blur', 'keydown', 'keyup', 'pointerup']) {
    code.addEventListener(type, drawCaret)
  }
  let places: HTMLElement[] = []
  let isOpen = true
  let isPassed = false
  let isComposing = false
  code.addEventListener('compositionstart', () => (isComposing = true))
  code.addEventListener('compositionend', () => (isComposing = false))
  // A keyboard would insert its text again beside a value that was changed meanwhile.
  const isUnfinished = () => isComposing && /\D/.test(code.value)

  return {
    code,
    codeTitle,
    isUnfinished,

    /** `mayType`: the service would compare a code. */
    drawCode(state: State, mayType: boolean, isWrong: boolean): void {
      const length = state.sent?.codeLength ?? 4
      setAttributes(code, { maxlength: `${length}`, 'aria-invalid': `${isWrong}` })
      code.readOnly = !mayType
      if (code.value !== state.code && !isUnfinished()) code.value = state.code
      isPassed = state.isPassed
      isOpen = mayType || state.busyWith !== undefined
      digits.classList.toggle('postern-closed', !isOpen && !isPassed)
      drawPlaces(length)
    },
  }

  function drawPlaces(length: number): void {
    if (places.length !== length) {
      for (const place of places) place.remove()
      places = Array.from({ length }, () =>
        add(digits, 'span', 'postern-digit', { 'aria-hidden': 'true' }),
      )
      setTurn(digits, length)
    }
    drawDigits()
  }

  function drawDigits(): void {
    const at = Math.min(code.value.length, places.length - 1)
    const isTyping = isOpen && code.matches(':focus')
    const filled = places.filter((place) => place.textContent).length
    for (const [index, place] of places.entries()) {
      // Boxes of new digits turn one after another. When the code has passed, all boxes turn.
      if (isPassed || index >= filled) setTurn(place, isPassed ? index : index - filled)
      set(place, code.value[index] ?? '')
      place.classList.toggle('postern-active', isTyping && index === at)
    }
  }

  /** Draws the caret in the first empty box. */
  function drawCaret(): void {
    if (code.selectionStart === code.selectionEnd) {
      code.setSelectionRange(code.value.length, code.value.length)
    }
    drawDigits()
  }
}

/** Sets the delay of an element's animation, by the element's place in the row. */
const setTurn = (element: HTMLElement, turn: number) =>
  element.style.setProperty('--_turn', `${turn}`)
