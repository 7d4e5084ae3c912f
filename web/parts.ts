import type { Problem } from './client.ts'
import type { Memory } from './memory.ts'
import type { Screen } from './screen.ts'
import type { Settings } from './settings.ts'
import type { View } from './view.ts'
import type { Tell, Work } from './work.ts'

/** Shows what a refusal means, and closes what would be refused too. `to`: for which address. */
export type Refused = (during: 'send' | 'check', to: string, problem: Problem) => void

/** What sending and checking are done with. */
export interface Parts {
  settings: Settings
  view: View
  screen: Screen
  memory: Memory
  work: Work
  /** An event for the page. */
  tell: Tell
  refused: Refused
}
