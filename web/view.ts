/**
 * The elements of the field. They are ordinary elements of the page, not of a shadow root, so that password managers and
 * autofill find the inputs. Both steps have the same size, so nothing moves between them.
 */
import { createAddressStep } from './address-step.ts'
import { createCodeStep } from './code-step.ts'
import { add, make, set, setAttributes, setEnabled } from './elements.ts'
import type { Shown } from './shown.ts'

export type View = ReturnType<typeof createView>

let count = 0

export function createView(host: HTMLElement) {
  const prefix = `postern-${++count}`
  const root = make('div', 'postern-field')
  const steps = add(root, 'div', 'postern-steps')
  const addressStep = createAddressStep(steps, prefix)
  const codeStep = createCodeStep(steps, prefix)
  const { address, country, send } = addressStep
  const { code, again } = codeStep

  // A screen reader reads each new sentence by itself.
  const status = { id: `${prefix}-message`, role: 'status', 'aria-atomic': 'false' }
  const said = add(add(root, 'p', 'postern-message', status), 'span', '')
  const message = add(said, 'span', '')
  const note = add(said, 'span', '')
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

  return {
    address,
    country,
    send,
    code,
    again,
    other,
    change,
    challenge,
    /** Writes the pass and its recipient into the form, for the server of the site. */
    carry(pass: string, channel: string, to: string): void {
      carried.pass.value = pass
      carried.channel.value = channel
      carried.to.value = to
    },
    pass: () => carried.pass.value,

    render(shown: Shown): void {
      const { step, tone, isBusy, isPassed, canLeave } = shown
      setAttributes(root, { 'data-step': step, 'data-tone': tone, 'aria-busy': String(isBusy) })
      root.classList.toggle('postern-passed', isPassed)
      addressStep.render(shown)
      codeStep.render(shown)
      set(message, shown.message)
      set(note, shown.note)
      drawLink(other, shown.other, canLeave)
      drawLink(change, shown.change, canLeave)
    },

    remove(): void {
      root.remove()
    },
  }
}

function drawLink(link: HTMLElement, text: string | undefined, isEnabled: boolean): void {
  set(link, text ?? '')
  link.hidden = text === undefined
  setEnabled(link, isEnabled)
}
