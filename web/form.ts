/** Events of the form and the page around a field. */

export function watchForm(
  host: HTMLElement,
  on: {
    /** Called after the form was stopped. */
    held(): void
    keyboardMoved(): void
    /** Called when the fragment of the address changes. */
    linkOpened(): void
    online(): void
    /** Called when any input of the page changes. */
    pageTyped(): void
    /** Called when the browser shows the page again from its history. */
    shownAgain(): void
    textsChanged(): void
  },
) {
  const watching = new AbortController()
  const { signal } = watching
  const form = host.closest('form')
  let isPressed = false
  // Runs before the handlers of the page.
  form?.addEventListener('submit', submitted, { capture: true, signal })
  addEventListener('click', pressed, { capture: true, signal })
  host.addEventListener('invalid', foundInvalid, { signal })
  visualViewport?.addEventListener('resize', on.keyboardMoved, { signal })
  addEventListener('online', on.online, { signal })
  addEventListener('hashchange', on.linkOpened, { signal })
  addEventListener('input', on.pageTyped, { signal })
  addEventListener('pageshow', ({ persisted }) => persisted && on.shownAgain(), { signal })
  const texts = new MutationObserver(on.textsChanged)
  texts.observe(document, { attributeFilter: ['lang'], subtree: true })
  // Attributes such as `text-send`.
  texts.observe(host, { attributes: true })
  return {
    stop(): void {
      watching.abort()
      texts.disconnect()
    },
    submit: () => form?.requestSubmit(),
  }

  /** Needed only for a form with `novalidate`. In other forms, the browser finds the invalid field first. */
  function submitted(event: Event): void {
    const { submitter } = event as SubmitEvent & { submitter: HTMLButtonElement | null }
    if (submitter?.formNoValidate || !host.matches(':invalid')) return
    event.preventDefault()
    event.stopImmediatePropagation()
    on.held()
  }

  /** A button was pressed. The browser checks the form within this task. */
  function pressed(): void {
    isPressed = true
    setTimeout(() => (isPressed = false))
  }

  /** Shows what is missing when a person wants to send the form, and not when a script asks whether it is valid. */
  function foundInvalid(event: Event): void {
    if (!isPressed) return
    // With several invalid elements, the browser reports the first one itself.
    if (form?.querySelectorAll(':invalid:not(fieldset)').length === 1) event.preventDefault()
    on.held()
  }
}
