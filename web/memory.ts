/** State that a field keeps over a reload. */
import { createSavedCode, type Saved } from './saved-code.ts'
import type { Screen } from './screen.ts'
import type { Settings } from './settings.ts'

export type Memory = ReturnType<typeof createMemory>

export function createMemory({ state, addressOf, change }: Screen, settings: Settings) {
  const saved = () => createSavedCode(`postern ${settings.src} ${settings.key} ${settings.scene}`)

  function save(): void {
    const { channel, sent, waits, locks } = state
    saved().write({ channel, sent, waits, locks })
  }

  return {
    save,
    recall: (): Saved | undefined => saved().read(),
    forget: (): void => saved().write(undefined),

    /** Stores how long the service will refuse sends to this address (`waits`), or its checks and sends (`locks`). */
    hold(what: 'waits' | 'locks', forMs: number): void {
      const until = { to: addressOf(), untilMs: Date.now() + forMs }
      change({ [what]: { ...state[what], [state.channel]: until } })
      save()
    },
  }
}
