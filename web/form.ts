/** The form and the page around a field. */

export function watchForm(
  host: HTMLElement,
  on: {
    /** Whether the form may go. */
    maySubmit(): boolean
    /** It was held back. */
    held(): void
    reset(): void
    online(): void
    /** The page is come back to, from the history. */
    shownAgain(): void
  },
): { stop(): void } {
  const watching = new AbortController()
  const { signal } = watching
  const form = host.closest('form')
  // Before the page's own handlers.
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
