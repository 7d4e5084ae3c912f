/**
 * The input of a phone number: groups the digits if the country is known, and has a list of countries. Text that is added
 * at the end is grouped at once. A change in the middle is grouped only when the person goes on, because grouping would
 * move the caret.
 */
import { grouped, withoutCallingCode } from './phone-number.ts'
import type { Screen } from './screen.ts'
import type { View } from './view.ts'

export function watchNumber({ address, country }: View, screen: Screen): void {
  const { state, countryNow, change } = screen

  address.addEventListener('input', (event) => {
    const { selectionStart, value } = address
    const isAtEnd = selectionStart === value.length && !(event as InputEvent).isComposing
    if (isAtEnd) group()
    change({ wrong: '', message: undefined })
  })
  address.addEventListener('change', () => {
    group()
    screen.draw()
  })
  country.addEventListener('change', () => {
    // The chosen country replaces the country of the number.
    address.value = withoutCallingCode(address.value)
    state.country = country.value
    group()
    change({ wrong: '', message: undefined })
  })

  function group(): void {
    if (state.channel !== 'sms' || !countryNow()) return
    const { value } = address
    const text = grouped(value, countryNow())
    if (text !== value) address.value = text
  }
}
