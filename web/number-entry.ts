/** The input of a phone number, with a list of countries. Groups the typed digits if the country is known. */
import { kindOf } from './channels.ts'
import { caretIn, grouped, withoutCallingCode } from './phone-number.ts'
import type { Screen } from './screen.ts'
import type { View } from './view.ts'

export function watchNumber({ address, country }: View, screen: Screen): void {
  const { state, countryNow, change } = screen

  address.addEventListener('input', (event) => {
    const { inputType, isComposing } = event as InputEvent
    if (!isComposing) group(inputType)
    change({ wrong: '', message: undefined })
  })
  address.addEventListener('change', () => {
    group()
    screen.redraw()
  })
  // Before the event reaches the page, where the field is drawn again.
  country.addEventListener('input', () => {
    // The chosen country replaces the country of the number.
    address.value = withoutCallingCode(address.value, countryNow())
    state.country = country.value
    group()
    change({ wrong: '', message: undefined })
  })

  /** Groups the digits again. `inputType`: the change that a person made at the caret. */
  function group(inputType?: string): void {
    if (kindOf(state.channel) !== 'sms' || !countryNow()) return
    const { value, selectionStart } = address
    const text = grouped(value, countryNow())
    if (text === value) return
    address.value = text
    if (!inputType) return
    const before = value.slice(0, selectionStart ?? undefined)
    const caret = caretIn(text, before, inputType === 'deleteContentForward')
    address.setSelectionRange(caret, caret)
  }
}
