/** Shows a refusal: its meaning, its duration and the next step of the person. */

import { kindOf } from './channels.ts'
import type { Parts, Refused } from './parts.ts'
import { isUnanswered, refusalOf } from './refusal.ts'
import type { State } from './state.ts'
import type { TextName } from './texts.ts'

export function createRefused(parts: Omit<Parts, 'refused' | 'view' | 'work'>): Refused {
  const { settings, screen, memory, tell } = parts
  const { state, complain } = screen

  return (during, to, problem) => {
    const { channel, sent } = state
    const hasOther = settings.channels.length > 1
    const isNational = kindOf(channel) === 'sms' && !to.startsWith('+')
    const { origin } = location
    const { language } = settings
    const asked = { during, channel, hasOther, isNational, origin, language }
    const refusal = refusalOf(problem, asked)
    const { values, waitMs, lockMs, isGone, isFault } = refusal
    let { name, about = '' }: { name: TextName; about?: State['wrong'] } = refusal
    if (isFault) console.error('<postern-code> was refused:', problem)
    // A code that was perhaps not compared stays in the input, to be sent again.
    if (during === 'check' && !isUnanswered(problem)) state.code = ''
    if (isGone && sent) state.sent = { ...sent, expiresAtMs: 0 }
    const way = during === 'next' ? sent?.way : undefined
    if (way && (waitMs || about === 'address')) {
      // Only the next way was refused, perhaps its address. The code and its number stay.
      name = 'notSent'
      about = ''
      if (!waitMs) delete way.next
    }
    if (waitMs) memory.hold('waits', to, waitMs, way?.next)
    if (lockMs) memory.hold('locks', to, lockMs)
    if (about === 'address') state.sent = undefined
    memory.save()
    complain(name, about, values, problem.detail)
    tell('refused', { during: during === 'check' ? during : 'send', problem, channel })
  }
}
