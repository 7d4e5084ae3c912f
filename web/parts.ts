import type { Problem } from './client.ts'
import type { Tell } from './events.ts'
import type { Memory } from './memory.ts'
import type { During } from './refusal.ts'
import type { Screen } from './screen.ts'
import type { Settings } from './settings.ts'
import type { View } from './view.ts'
import type { Work } from './work.ts'

/** Shows a refusal and closes the steps that would be refused too. `to`: the address that was refused. */
export type Refused = (during: During, to: string, problem: Problem) => void

/** Parts that sending and checking share. */
export interface Parts {
  settings: Settings
  view: View
  screen: Screen
  memory: Memory
  work: Work
  /** Dispatches an event for the page. */
  tell: Tell
  refused: Refused
}
