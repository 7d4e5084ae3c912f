/** The input for the phone number or mail address, with the country before it. */
import { add, set, setAttributes, setEnabled } from './elements.ts'
import type { Shown, ShownCountry } from './shown.ts'

export function createAddressStep(parent: Element, prefix: string) {
  const step = add(parent, 'div', 'postern-step')
  const label = add(step, 'label', 'postern-label', { for: `${prefix}-to` })
  const given = add(step, 'p', 'postern-label', { id: `${prefix}-given` })
  // A country stands before its number in every language.
  const line = add(step, 'div', 'postern-to', { dir: 'ltr' })
  const box = add(line, 'div', 'postern-country')
  const countryPrefix = add(box, 'span', 'postern-prefix', { id: `${prefix}-country` })
  const country = add(box, 'select', 'postern-countries', { autocomplete: 'off' })
  const address = add(line, 'input', 'postern-input', {
    id: `${prefix}-to`,
    dir: 'auto',
    maxlength: '254',
    spellcheck: 'false',
    'aria-describedby': `${prefix}-country ${prefix}-message`,
  })
  const send = add(step, 'button', 'postern-button', {
    type: 'button',
    'aria-describedby': `${prefix}-given`,
  })

  let drawn: ShownCountry['options'] | undefined

  return {
    address,
    country,
    send,

    render(shown: Shown): void {
      const type = shown.channel === 'sms' ? 'tel' : 'email'
      setAttributes(address, {
        type,
        autocomplete: type,
        'aria-invalid': String(shown.wrong === 'address'),
      })
      address.readOnly = shown.isBusy
      drawCountry(shown.country)
      set(label, shown.label)
      set(given, shown.given ?? '')
      label.hidden = line.hidden = shown.given !== undefined
      given.hidden = !line.hidden
      set(send, shown.send)
      setEnabled(send, shown.canSend)
    },
  }

  function drawCountry(shown: ShownCountry | undefined): void {
    box.hidden = shown === undefined
    set(countryPrefix, shown?.prefix ?? '')
    if (!shown) return
    const { label, options, value } = shown
    country.hidden = options.length === 0
    box.classList.toggle('postern-picker', options.length > 0)
    setAttributes(country, { 'aria-label': label })
    if (options !== drawn) drawOptions(options)
    if (country.value !== value) country.value = value
  }

  function drawOptions(options: ShownCountry['options']): void {
    drawn = options
    country.replaceChildren()
    for (const { value, name } of options) set(add(country, 'option', '', { value }), name)
    country.selectedIndex = -1
  }
}
