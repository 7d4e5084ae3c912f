/** The input for the code, above one drawn box for each digit. */
import { add, set, setAttributes, setEnabled } from './elements.ts'
import type { Shown } from './shown.ts'

export function createCodeStep(parent: Element, prefix: string) {
  const step = add(parent, 'div', 'postern-step')
  const label = add(step, 'label', 'postern-label', { for: `${prefix}-code` })
  const row = add(step, 'div', 'postern-row')
  const digits = add(row, 'div', 'postern-digits', { dir: 'ltr' })
  const code = add(digits, 'input', 'postern-code', {
    id: `${prefix}-code`,
    type: 'text',
    inputmode: 'numeric',
    autocomplete: 'one-time-code',
    pattern: '[0-9]*',
    spellcheck: 'false',
    'aria-describedby': `${prefix}-message`,
  })
  const again = add(row, 'button', 'postern-button postern-again', { type: 'button' })
  for (const type of ['focus', 'blur', 'keyup', 'pointerup']) {
    code.addEventListener(type, drawCaret)
  }
  let isOpen = true

  return {
    code,
    again,

    render(shown: Shown): void {
      const { codeLength, isPassed, wrong } = shown
      setAttributes(code, {
        maxlength: String(codeLength),
        'aria-invalid': String(wrong === 'code'),
      })
      code.readOnly = !shown.canType
      if (code.value !== shown.code) code.value = shown.code
      set(label, shown.codeLabel)
      set(again, shown.again)
      setEnabled(again, shown.canSend)
      isOpen = shown.canType || shown.isBusy
      digits.classList.toggle('postern-closed', !isOpen && !isPassed)
      drawPlaces(codeLength)
    },
  }

  function drawPlaces(length: number): void {
    const places = digits.querySelectorAll('.postern-digit')
    if (places.length !== length) {
      for (const place of places) place.remove()
      for (let n = 0; n < length; n++)
        add(digits, 'span', 'postern-digit', { 'aria-hidden': 'true' })
    }
    drawDigits()
  }

  function drawDigits(): void {
    const places = [...digits.querySelectorAll('.postern-digit')]
    const at = Math.min(code.value.length, places.length - 1)
    const isTyping = isOpen && code.matches(':focus')
    for (const [index, place] of places.entries()) {
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
