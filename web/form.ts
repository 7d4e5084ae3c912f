/** Events of the form and the page around a field. */

export function watchForm(
  host: HTMLElement,
  on: {
    /** Whether the form can be submitted. */
    maySubmit(): boolean
    /** Called after the form was stopped. */
    held(): void
    reset(): void
    online(): void
    /** Called when the browser shows the page again from its history. */
    shownAgain(): void
  },
): { stop(): void } {
  const watching = new AbortController()
  const { signal } = watching
  const form = host.closest('form')
  // Runs before the handlers of the page.
  form?.addEventListener('submit', submitted, { capture: true, signal })
  form?.addEventListener('reset', on.reset, { signal })
  addEventListener('online', on.online, { signal })
  addEventListener('pageshow', ({ persisted }) => persisted && on.shownAgain(), { signal })
  return { stop: () => watching.abort() }

  function submitted(event: Event): void {
    if (on.maySubmit()) return
    event.preventDefault()
    event.stopImmediatePropagation()
    on.held()
  }
}
