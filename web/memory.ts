/** State that a field keeps over a reload. */
import { readAskedBy, readSaved, type Saved, writeAsked, writeSaved } from './saved-code.ts'
import type { Screen } from './screen.ts'
import type { Settings } from './settings.ts'

export type Memory = ReturnType<typeof createMemory>

export function createMemory({ state, change }: Screen, settings: Settings) {
  const name = () => `postern ${settings.src} ${settings.key} ${settings.scene}`

  function saved(): Saved {
    const { channel, isSwitched, sent, left, waits, locks } = state
    return { channel, isSwitched, sent, left, waits, locks }
  }

  const save = () => writeSaved(name(), saved())

  return {
    /** One for each key and purpose. */
    name,
    saved,
    save,
    /** The name of the memory whose field asked for the code in this browser. */
    askedBy: readAskedBy,
    remember: (id: string, untilMs: number): void => writeAsked(id, { by: name(), untilMs }),
    recall: (): Saved | undefined => readSaved(name()),
    forget: (): void => writeSaved(name()),

    /** Stores how long the service will refuse sends to this address (`waits`), or its checks and sends (`locks`). */
    hold(what: 'waits' | 'locks', to: string, forMs: number, channel = state.channel): void {
      const until = { to, untilMs: Date.now() + forMs, forMs }
      change({ [what]: { ...state[what], [channel]: until } })
      save()
    },
  }
}
