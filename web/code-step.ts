/** The input for the code, above one drawn box for each digit. */
import { add, set, setAttributes } from './elements.ts'
import type { Shown } from './shown.ts'

export function createCodeStep(parent: Element, prefix: string) {
  const step = add(parent, 'div', 'postern-step')
  const label = add(step, 'label', 'postern-label', { for: `${prefix}-code` })
  const digits = add(step, 'div', 'postern-digits', { dir: 'ltr' })
  const code = add(digits, 'input', 'postern-code', {
    id: `${prefix}-code`,
    type: 'text',
    inputmode: 'numeric',
    autocomplete: 'one-time-code',
    'aria-describedby': `${prefix}-message`,
  })
  for (const type of ['focus', 'blur', 'keyup', 'pointerup']) {
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
    isUnfinished,

    render(shown: Shown): void {
      setAttributes(code, {
        maxlength: String(shown.codeLength),
        'aria-invalid': String(shown.wrong === 'code'),
      })
      code.readOnly = !shown.mayType
      if (code.value !== shown.code && !isUnfinished()) code.value = shown.code
      set(label, shown.codeLabel)
      isPassed = shown.isPassed
      isOpen = shown.mayType || shown.isBusy
      digits.classList.toggle('postern-closed', !isOpen && !isPassed)
      drawPlaces(shown.codeLength)
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
  element.style.setProperty('--_turn', String(turn))
