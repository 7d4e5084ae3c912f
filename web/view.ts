/**
 * What the field is drawn with. Ordinary elements in the page itself, not in a shadow root: password managers and
 * autofill look for inputs there. Both steps lie in one place of one size, so nothing moves between them.
 */
import type { Channel } from './client.ts'

export interface Shown {
  step: 'address' | 'code'
  channel: Channel
  /** Said in place of the input for the address, where the page has the address. */
  given: string | undefined
  label: string
  send: string
  codeLabel: string
  codeLength: number
  again: string
  /** Undefined: no such button. */
  other: string | undefined
  change: string | undefined
  message: string
  tone: 'plain' | 'busy' | 'wrong' | 'right'
  /** Which input the message is about. */
  wrong: 'address' | 'code' | ''
  canSend: boolean
  canType: boolean
  isBusy: boolean
  isPassed: boolean
}

export type View = ReturnType<typeof createView>

let count = 0

export function createView(host: HTMLElement) {
  const prefix = `postern-${++count}`
  const root = make('div', 'postern-field')
  const steps = add(root, 'div', 'postern-steps')

  const addressStep = add(steps, 'div', 'postern-step')
  const label = add(addressStep, 'label', 'postern-label', { for: `${prefix}-to` })
  const given = add(addressStep, 'p', 'postern-label', { id: `${prefix}-given` })
  const addressRow = add(addressStep, 'div', 'postern-row')
  const address = add(addressRow, 'input', 'postern-input', {
    id: `${prefix}-to`,
    maxlength: '254',
    autocapitalize: 'off',
    spellcheck: 'false',
    'aria-describedby': `${prefix}-message`,
  })
  const send = add(addressRow, 'button', 'postern-button', {
    type: 'button',
    'aria-describedby': `${prefix}-given`,
  })

  const codeStep = add(steps, 'div', 'postern-step')
  const codeLabel = add(codeStep, 'label', 'postern-label', { for: `${prefix}-code` })
  const codeRow = add(codeStep, 'div', 'postern-row')
  const digits = add(codeRow, 'div', 'postern-digits', { dir: 'ltr' })
  const code = add(digits, 'input', 'postern-code', {
    id: `${prefix}-code`,
    type: 'text',
    inputmode: 'numeric',
    autocomplete: 'one-time-code',
    pattern: '[0-9]*',
    spellcheck: 'false',
    'aria-describedby': `${prefix}-message`,
  })
  const again = add(codeRow, 'button', 'postern-button postern-again', { type: 'button' })

  const message = add(root, 'p', 'postern-message', { id: `${prefix}-message`, role: 'status' })
  const challenge = add(root, 'div', 'postern-challenge')
  const links = add(root, 'div', 'postern-links')
  const other = add(links, 'button', 'postern-link', { type: 'button' })
  const change = add(links, 'button', 'postern-link', { type: 'button' })
  host.append(root)
  const hidden = (name: string) => add(root, 'input', '', { type: 'hidden', name })
  const carried = {
    pass: hidden('postern-pass'),
    channel: hidden('postern-channel'),
    to: hidden('postern-to'),
  }

  /** One drawn place for each digit, above which the input lies. */
  function drawDigits(length: number, isPassed: boolean): void {
    const places = digits.querySelectorAll('.postern-digit')
    if (places.length !== length) {
      for (const place of places) place.remove()
      for (let n = 0; n < length; n++)
        add(digits, 'span', 'postern-digit', { 'aria-hidden': 'true' })
    }
    const at = Math.min(code.value.length, length - 1)
    const isTyping = !isPassed && code.matches(':focus')
    digits.querySelectorAll('.postern-digit').forEach((place, index) => {
      set(place, code.value[index] ?? '')
      place.classList.toggle('postern-active', isTyping && index === at)
    })
  }

  return {
    root,
    address,
    send,
    code,
    again,
    other,
    change,
    challenge,
    /** For the server of the form around: the pass, and whose it is. */
    carry(pass: string, channel: string, to: string): void {
      carried.pass.value = pass
      carried.channel.value = channel
      carried.to.value = to
    },
    pass: () => carried.pass.value,

    render(shown: Shown): void {
      const { step, channel, codeLength, isPassed, tone, wrong } = shown
      root.dataset.step = step
      root.dataset.tone = tone
      const isSms = channel === 'sms'
      setAttributes(address, {
        type: isSms ? 'tel' : 'email',
        autocomplete: isSms ? 'tel' : 'email',
        inputmode: isSms ? 'tel' : 'email',
        // Numbers and addresses are written from left to right in every language.
        dir: 'ltr',
        'aria-invalid': String(wrong === 'address'),
      })
      setAttributes(code, {
        maxlength: String(codeLength),
        'aria-invalid': String(wrong === 'code'),
      })
      address.readOnly = shown.isBusy
      code.readOnly = isPassed || !shown.canType
      set(label, shown.label)
      set(given, shown.given ?? '')
      label.hidden = address.hidden = shown.given !== undefined
      given.hidden = !address.hidden
      set(send, shown.send)
      set(codeLabel, shown.codeLabel)
      set(again, shown.again)
      // Not `disabled`: that would take the focus from whoever just pressed it.
      for (const button of [send, again]) {
        setAttributes(button, { 'aria-disabled': String(!shown.canSend) })
      }
      setAttributes(root, { 'aria-busy': String(shown.isBusy) })
      root.classList.toggle('postern-passed', isPassed)
      set(message, shown.message)
      set(other, shown.other ?? '')
      set(change, shown.change ?? '')
      other.hidden = shown.other === undefined
      change.hidden = shown.change === undefined
      drawDigits(codeLength, isPassed)
    },

    remove(): void {
      root.remove()
    },
  }
}

function make<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, className: string) {
  const element = document.createElement(tag)
  if (className) element.className = className
  return element
}

function add<Tag extends keyof HTMLElementTagNameMap>(
  parent: Element,
  tag: Tag,
  className: string,
  attributes: Readonly<Record<string, string>> = {},
) {
  const element = make(tag, className)
  setAttributes(element, attributes)
  parent.append(element)
  return element
}

function setAttributes(element: Element, attributes: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value)
  }
}

/** Only what changed: a screen reader says a message again that is written again. */
function set(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}
