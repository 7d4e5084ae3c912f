/** The input for the phone number or mail address, with the country before it. */
import { add, set, setAttributes, setEnabled } from './elements.ts'
import type { Shown, ShownCountry } from './shown.ts'

export function createAddressStep(parent: Element, prefix: string) {
  const step = add(parent, 'div', 'postern-step')
  const label = add(step, 'label', 'postern-label', { for: `${prefix}-to` })
  const given = add(step, 'p', 'postern-label', { id: `${prefix}-given` })
  const row = add(step, 'div', 'postern-row')
  // Numbers and addresses are written from left to right in every language.
  const line = add(row, 'div', 'postern-to', { dir: 'ltr' })
  const box = add(line, 'div', 'postern-country')
  const countryPrefix = add(box, 'span', 'postern-prefix', { id: `${prefix}-country` })
  const country = add(box, 'select', 'postern-countries', { autocomplete: 'off' })
  const address = add(line, 'input', 'postern-input', {
    id: `${prefix}-to`,
    maxlength: '254',
    autocapitalize: 'off',
    spellcheck: 'false',
    'aria-describedby': `${prefix}-country ${prefix}-message`,
  })
  const send = add(row, 'button', 'postern-button', {
    type: 'button',
    'aria-describedby': `${prefix}-given`,
  })

  return {
    address,
    country,
    send,

    render(shown: Shown): void {
      const isSms = shown.channel === 'sms'
      setAttributes(address, {
        type: isSms ? 'tel' : 'email',
        autocomplete: isSms ? 'tel' : 'email',
        inputmode: isSms ? 'tel' : 'email',
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
    if (country.dataset.names !== names(options)) drawOptions(options)
    if (country.value === value) return
    // A reset of the form chooses the default option.
    for (const option of country.options) option.defaultSelected = option.value === value
    country.value = value
  }

  function drawOptions(options: ShownCountry['options']): void {
    country.dataset.names = names(options)
    country.replaceChildren()
    for (const { value, name } of options) set(add(country, 'option', '', { value }), name)
    country.selectedIndex = -1
  }
}

const names = (options: ShownCountry['options']) => options.map(({ name }) => name).join()
