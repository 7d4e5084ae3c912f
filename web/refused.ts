/** Shows a refusal: its meaning, its duration and the next step of the person. */

import { kindOf } from './channels.ts'
import type { Parts, Refused } from './parts.ts'
import { isUnanswered, refusalOf } from './refusal.ts'

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
    const { name, values, about = '', waitMs, lockMs, isGone, isFault } = refusal
    if (isFault) console.error('<postern-code> was refused:', problem)
    // A code that was perhaps not compared stays in the input, to be sent again.
    if (during === 'check' && !isUnanswered(problem)) state.code = ''
    if (isGone && sent) state.sent = { ...sent, expiresAtMs: 0 }
    if (problem.code === 'no_more_ways' && sent?.way) delete sent.way.next
    if (waitMs) memory.hold('waits', to, waitMs)
    if (lockMs) memory.hold('locks', to, lockMs)
    if (about === 'address') state.sent = undefined
    memory.save()
    complain(name, about, values, problem.detail)
    tell('refused', { during, problem, channel })
  }
}
