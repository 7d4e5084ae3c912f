/** Reads the state of the demo server and sends it commands (src/dev/demo-page.ts). */
import type { DemoState } from './demo-state.ts'

const everyMs = 500
const restMs = 2_000

/** Polls the state while the page is visible. `onState` receives null when the server does not answer. */
export function followState(onState: (state: DemoState | null) => void) {
  let latest: DemoState | null = null
  let timer: ReturnType<typeof setTimeout> | undefined
  const waiting = new Set<() => void>()

  async function ask(): Promise<void> {
    clearTimeout(timer)
    try {
      const response = await fetch('/demo/state', { signal: AbortSignal.timeout(5_000) })
      latest = response.ok ? ((await response.json()) as DemoState) : null
    } catch {
      latest = null
    }
    onState(latest)
    for (const wake of waiting) wake()
    clearTimeout(timer)
    timer = setTimeout(ask, document.hidden ? restMs : everyMs)
  }

  document.addEventListener('visibilitychange', () => document.hidden || ask())
  void ask()

  return {
    ask,

    /** Waits for a state where `find` returns a value, and returns that value. Undefined after `withinMs`. */
    until<Found>(find: (state: DemoState) => Found | undefined, withinMs = 30_000) {
      return new Promise<Found | undefined>((resolve) => {
        const end = (found: Found | undefined) => {
          clearTimeout(deadline)
          waiting.delete(look)
          resolve(found)
        }
        const look = () => {
          const found = latest ? find(latest) : undefined
          if (found !== undefined) end(found)
        }
        const deadline = setTimeout(() => end(undefined), withinMs)
        waiting.add(look)
        void ask()
      })
    },
  }
}

export type StateFollower = ReturnType<typeof followState>

/** Throws when the command failed: the server, Redis or PostgreSQL does not answer. */
export async function tellServer(path: string, body: object = {}): Promise<unknown> {
  const response = await fetch(`/demo/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (response.status >= 500) throw new Error(`${path}: ${response.status}`)
  return response.json()
}
