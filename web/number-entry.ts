/**
 * A phone number while it is typed: grouped where its country is known, and the country picked from a list. Only a
 * number that is typed at its end is grouped at once; changed in its middle it is left alone, so that the caret
 * stays, and grouped when the person goes on.
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
    // The one that is picked now overrules the number's own.
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
