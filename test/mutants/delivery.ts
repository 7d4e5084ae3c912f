import type { MutantRoom } from './mutant.ts'

const deliver = ['test/delivery/deliver']
const guardedProvider = ['test/delivery/guarded-provider']
const circuit = ['test/delivery/circuit']
const slots = ['test/delivery/slots']
const resolveUnknown = ['test/delivery/resolve-unknown']
const pace = ['test/delivery/provider-limits']
const retry = ['test/delivery/retry', 'test/delivery/provider-order']

export const room: MutantRoom = {
  tests: [
    ...deliver,
    ...guardedProvider,
    ...circuit,
    ...slots,
    ...resolveUnknown,
    ...pace,
    ...retry,
  ],
  mutants: [
    // The story of one notice
    {
      breaks: 'a notice is sent before its time',
      find: 'if (notice.opensInMs > 0) return { done: false, againInMs: notice.opensInMs }',
      replace: 'if (notice.opensInMs > 0) log.jobFailed(id, null)',
      tests: deliver,
      mayLive: 'the claim itself waits for sendAt',
    },
    {
      breaks: 'a pause is not capped by the time that is left',
      find: 'const retryInMs = Math.min(outcome.retryInMs ?? 0, leftMs)',
      replace: 'const retryInMs = outcome.retryInMs ?? 0',
      tests: deliver,
    },
    {
      breaks: 'a message that may have arrived ends as expired',
      find: 'if (isOver && attemptLog.unknowns().length > 0) return record(outcomeUnknown)',
      replace: 'if (isOver && attemptLog.unknowns().length > 0) return record(tooLate)',
      tests: deliver,
    },
    {
      breaks: 'a message whose time is over is sent',
      find: '    if (isOver) return record(tooLate)\n',
      replace: '',
      tests: deliver,
      mayLive: 'the loop looks at the time again before each provider',
    },
    {
      breaks: 'tries are without end',
      find: '    if (!mayTryAgain(attemptLog.all(), retry)) return record(triesUsedUp(attemptLog))\n',
      replace: '',
      tests: deliver,
      mayLive: 'the loop looks at the tries again before each provider',
    },
    {
      breaks: 'one pass may use more tries than are left',
      find: '      if (!mayTryAgain(attemptLog.all(), retry)) break\n',
      replace: '',
      tests: deliver,
    },
    {
      breaks: 'the last try goes to a dead provider while another is paused',
      find: '      if (isLastTry() && pauseEndsInMs < leftMs && attemptLog.hasFailedAt(provider.name)) break\n',
      replace: '',
      tests: deliver,
    },
    {
      breaks: 'the last try goes to a dead provider before it is asked whether another is paused',
      find: '    if (isLastTry()) {\n',
      replace: '    if (!isLastTry()) {\n',
      tests: deliver,
    },
    {
      breaks: 'the last try waits for a pause that outlasts the message',
      find: 'isLastTry() && pauseEndsInMs < leftMs &&',
      replace: 'isLastTry() && pauseEndsInMs < Number.POSITIVE_INFINITY &&',
      tests: deliver,
    },
    {
      breaks: 'a provider that rejected is called again',
      find: 'providers.filter(({ name }) => !attemptLog.isRejectedBy(name))',
      replace: 'providers.filter(({ name }) => name !== undefined)',
      tests: deliver,
    },
    {
      breaks: 'codes wait behind bulk',
      find: "isUrgent: notice.kind === 'captcha',",
      replace: "isUrgent: notice.kind === 'notice',",
      tests: deliver,
    },
    {
      breaks: 'mayCall is always true: a lost claim is called for all the same',
      find: '          if (!claim) return undefined\n          claims = claim.claims\n          deadlineMs = performance.now() + claim.remainingMs\n          stopped = claim.remainingMs <= 0 ? tooLate : whyNot',
      replace:
        '          claims = claim?.claims ?? claims\n          deadlineMs = performance.now() + (claim?.remainingMs ?? 1_000)\n          stopped = claim && claim.remainingMs <= 0 ? tooLate : whyNot',
      tests: deliver,
    },
    {
      breaks: 'a call may last longer than the notice lives',
      find: 'return Math.ceil(Math.min(deps.timeoutMs, claim.remainingMs))',
      replace: 'return deps.timeoutMs',
      tests: deliver,
    },
    {
      breaks: 'a code that was replaced is sent by the next provider',
      find: 'stopped = claim.remainingMs <= 0 ? tooLate : whyNot',
      replace: 'stopped = claim.remainingMs <= 0 ? tooLate : null',
      tests: deliver,
    },
    {
      breaks: 'a held provider ends the pass',
      find: '        continue\n      }\n      attemptLog.add(',
      replace: '        break\n      }\n      attemptLog.add(',
      tests: deliver,
    },
    {
      breaks: 'a message that waits for its turn goes elsewhere',
      find: "if (result.reason === 'pace' || result.reason === 'busy') break\n",
      replace: '',
      tests: deliver,
    },
    {
      breaks: 'the last provider to open decides the wait',
      find: 'openInMs = Math.min(openInMs, result.retryInMs)',
      replace: 'openInMs = result.retryInMs',
      tests: deliver,
    },
    {
      breaks: 'a wrong recipient is tried elsewhere',
      find: "if (result.kind === 'invalid_recipient') {",
      replace: "if (result.kind === 'invalid_recipient' && !hasOther) {",
      tests: deliver,
    },
    {
      breaks: 'a message that is told "too fast" does not give way',
      find: 'const againInMs = result.retryAfterMs + giveWayMs',
      replace: 'const againInMs = result.retryAfterMs - giveWayMs',
      tests: deliver,
    },
    {
      breaks: 'a message of unknown outcome is sent by the next provider',
      find: 'if (attemptLog.unknowns().length > 0) return verdict',
      replace: 'if (attemptLog.unknowns().length > 9) return verdict',
      tests: [...deliver, 'test/delivery/unknown'],
    },
    {
      breaks: 'the answer of a provider is not written before the next is waited for',
      find: '      } else if (hasOther) {',
      replace: '      } else if (!hasOther) {',
      tests: deliver,
      mayLive:
        'a process that dies between two providers forgets one answer of a try that was not taken',
    },
    {
      breaks: 'one rejection of several fails the notice',
      find: 'if (providers.every(({ name }) => attemptLog.isRejectedBy(name))) {',
      replace: 'if (providers.some(({ name }) => attemptLog.isRejectedBy(name))) {',
      tests: deliver,
    },
    {
      breaks: 'a pause that a provider asked for uses up a try',
      find: 'if (isHeld && !hasFailed) return { state: ',
      replace: 'if (isHeld && hasFailed) return { state: ',
      tests: deliver,
    },
    {
      breaks: 'after the last try another one is waited for',
      find: '  if (!mayTryAgain(attemptLog.all(), retry)) return triesUsedUp(attemptLog)\n  return { state',
      replace: '  return { state',
      tests: deliver,
    },
    {
      breaks: 'an outcome that PostgreSQL did not take is lost',
      find: '          await sleep(pause)\n',
      replace: '          await sleep(pause)\n          return false\n',
      tests: [...deliver, 'test/delivery/record'],
    },
    {
      breaks: 'a row with what a far end said can not end',
      find: '          row = bare(row)\n',
      replace: '',
      tests: deliver,
    },
    {
      breaks: 'a lost claim is counted as finished',
      find: "if (isWritten && outcome.state !== 'pending') finished",
      replace: "if (outcome.state !== 'pending') finished",
      tests: [...deliver, 'test/delivery/record'],
    },
    {
      breaks: 'a notice without a template of this worker fails',
      find: "return record({ state: 'pending', retryInMs: newerWorkerPauseMs(notice) })",
      replace: "return record({ state: 'failed', error: 'not_rendered' })",
      tests: deliver,
    },
    // The provider
    {
      breaks: "one recipient's quota pauses the whole provider",
      find: "if (result.kind === 'throttled' && result.quotaOf !== 'recipient') {",
      replace: "if (result.kind === 'throttled') {",
      tests: guardedProvider,
    },
    {
      breaks: '"too fast" is forgotten',
      find: 'pausedUntilMs = Math.max(pausedUntilMs, performance.now() + result.retryAfterMs)',
      replace: 'pausedUntilMs = Math.max(pausedUntilMs, performance.now())',
      tests: guardedProvider,
    },
    {
      breaks: 'a slot is kept after the call',
      find: '    try {\n      return await sendInSlot(message, call)\n    } finally {\n      slot.leave()\n    }',
      replace: '    return await sendInSlot(message, call)',
      tests: guardedProvider,
    },
    {
      breaks: 'what was not taken keeps its turn',
      find: "if (!result || result.kind === 'unavailable') await permit.release()",
      replace: 'if (!result) await permit.release()',
      tests: [...guardedProvider, 'test/delivery/resilience'],
    },
    {
      breaks: 'a withdrawn call keeps its turn',
      find: "if (!result || result.kind === 'unavailable') await permit.release()",
      replace: "if (result?.kind === 'unavailable') await permit.release()",
      tests: guardedProvider,
    },
    {
      breaks: 'what was sent gives its turn back',
      find: "if (!result || result.kind === 'unavailable') await permit.release()",
      replace: 'await permit.release()',
      tests: [...guardedProvider, 'test/delivery/resilience'],
    },
    {
      breaks: 'while it waited the provider died, and it is called',
      find: '    // While the message waited the provider may have died or asked for a pause.\n    const away = whyAway()\n    if (away) return away\n',
      replace: '',
      tests: guardedProvider,
    },
    {
      breaks: 'a provider that never ends holds its message for ever',
      find: 'orLate<SendResult>(call(controller.signal), timeoutMs + overrunMs, () => ({',
      replace:
        'orLate<SendResult>(call(controller.signal), timeoutMs + overrunMs * 1_000, () => ({',
      tests: guardedProvider,
    },
    {
      breaks: 'a call is not told that its time is up',
      find: 'setTimeout(() => controller.abort(), timeoutMs)',
      replace: 'setTimeout(() => controller.abort(), timeoutMs * 1_000)',
      tests: [...guardedProvider, 'test/delivery/unknown'],
    },
    {
      breaks: 'a provider that throws stops the worker',
      find: "      onFault(noticeId, error)\n      return { kind: 'unknown', detail: 'the provider failed inside' }",
      replace: '      onFault(noticeId, error)\n      throw error',
      tests: guardedProvider,
    },
    // The circuit
    {
      breaks: 'four failures open the circuit',
      find: 'const failuresToOpen = 5',
      replace: 'const failuresToOpen = 4',
      tests: circuit,
    },
    {
      breaks: 'a good answer does not end the row of failures',
      find: '  function succeeded(durationMs: number): void {\n    failures = 0\n',
      replace: '  function succeeded(durationMs: number): void {\n',
      tests: circuit,
    },
    {
      breaks: 'a good answer does not close the circuit',
      find: '    probeAtMs = undefined\n    onChange(false)',
      replace: '    onChange(false)',
      tests: circuit,
    },
    {
      breaks: 'several probes go out at once',
      find: '      isProbing = true\n',
      replace: '',
      tests: circuit,
    },
    {
      breaks: 'a probe that was given up lets none through',
      find: '    giveUp() {\n      isProbing = false\n    },',
      replace: '    giveUp() {},',
      tests: circuit,
    },
    {
      breaks: 'a probe that failed is followed by the next at once',
      find: 'if (probeAtMs !== undefined) probeAtMs = performance.now() + probeEveryMs',
      replace: 'if (probeAtMs !== undefined) probeAtMs = performance.now()',
      tests: circuit,
    },
    {
      breaks: 'a slow answer counts twice',
      find: 'else if (!isOverdue) failed()',
      replace: 'else failed()',
      tests: circuit,
    },
    {
      breaks: 'what is usual is not learnt',
      find: 'usualMs = Math.max(durationMs, usualMs * 0.9)',
      replace: 'usualMs = 0 * durationMs',
      tests: circuit,
    },
    {
      breaks: 'an unknown outcome is no failure',
      find: "return kind === 'unavailable' || kind === 'unknown'\n",
      replace: "return kind === 'unavailable'\n",
      tests: circuit,
    },
    {
      breaks: 'a rejection is a failure',
      find: "return kind === 'unavailable' || kind === 'unknown'\n",
      replace: "return kind !== 'accepted'\n",
      tests: circuit,
    },
    // Slots
    {
      breaks: 'one call more than the provider carries',
      find: 'if (waiting === 0 && inUse + weight <= count) return grant(weight)',
      replace: 'if (waiting === 0 && inUse + weight <= count + 1) return grant(weight)',
      tests: slots,
    },
    {
      breaks: 'who comes later overtakes those that wait',
      find: 'if (waiting === 0 && inUse + weight <= count) return grant(weight)',
      replace: 'if (inUse + weight <= count) return grant(weight)',
      tests: slots,
    },
    {
      breaks: 'a slot that is left twice is two slots',
      find: '        if (isLeft) return\n',
      replace: '',
      tests: slots,
    },
    {
      breaks: 'bulk goes before codes',
      find: 'const line = urgent.length > 0 ? urgent : bulk\n      const [first]',
      replace: 'const line = bulk.length > 0 ? bulk : urgent\n      const [first]',
      tests: slots,
    },
    {
      breaks: 'a message too heavy for the provider waits for ever',
      find: 'const weight = Math.min(request.weight, count)',
      replace: 'const weight = request.weight',
      tests: slots,
    },
    {
      breaks: 'a code is turned away from a line of bulk',
      find: 'const last = isUrgent ? bulk.pop() : undefined',
      replace: 'const last = isUrgent ? undefined : bulk.pop()',
      tests: slots,
    },
    {
      breaks: 'those that can go nowhere else are sent away',
      find: 'if (one.isPatient) line.push(one)\n',
      replace: 'if (!one.isPatient) line.push(one)\n',
      tests: slots,
    },
    {
      breaks: 'one that gives up holds up those behind it',
      find: '            // It may have been the one that was too heavy for what is free.\n            admitNext()\n',
      replace: '',
      tests: slots,
    },
    {
      breaks: 'a closed line lets others in',
      find: '      if (isClosed) return sentAway\n',
      replace: '',
      tests: slots,
    },
    // Unknown tries
    {
      breaks: 'an early receipt is not looked for',
      find: '    if (receipt) {\n      attemptLog.addAnswer',
      replace: '    if (receipt && open.length > 9) {\n      attemptLog.addAnswer',
      tests: resolveUnknown,
    },
    {
      breaks: 'receipts out of reach stop the asking',
      find: '      if (error instanceof Unavailable) return undefined\n      throw error\n    }\n  }\n\n  /** `not_taken`',
      replace: '      throw error\n    }\n  }\n\n  /** `not_taken`',
      tests: resolveUnknown,
    },
    {
      breaks: 'a provider that did not have the message is asked',
      find: '({ name }) => provider === null || name === provider)\n      const sentMessage',
      replace: '({ name }) => provider === null || name !== undefined)\n      const sentMessage',
      tests: resolveUnknown,
    },
    {
      breaks: 'one provider that never took it is enough',
      find: "if (result.kind !== 'unavailable') word = 'unknown'",
      replace: "word = result.kind !== 'unavailable' ? 'unknown' : 'not_taken'",
      tests: resolveUnknown,
    },
    {
      breaks: 'who can not be asked has said no',
      find: "      if (!provider.query) {\n        word = 'unknown'\n        continue\n      }",
      replace: '      if (!provider.query) continue',
      tests: resolveUnknown,
    },
    {
      breaks: 'without anybody to ask it was not taken',
      find: "providers.length > 0 ? 'not_taken' : 'unknown'",
      replace: "'not_taken' as 'not_taken' | 'unknown'",
      tests: resolveUnknown,
    },
    {
      breaks: 'the word of a provider is not on the account',
      find: "if (answer === 'not_taken') attemptLog.addAnswer(provider, 'not_taken')\n",
      replace: '',
      tests: resolveUnknown,
    },
    // Pace
    {
      breaks: 'the pace is counted by recipient',
      find: "{ name: 'pace', key: '{name}', sliding: pace }",
      replace: "{ name: 'pace', key: '{to}', sliding: pace }",
      tests: pace,
    },
    {
      breaks: 'the quota is counted over all recipients',
      find: "{ name: 'quota', key: '{to}'",
      replace: "{ name: 'quota', key: '{name}'",
      tests: pace,
    },
    {
      breaks: 'a quota is told as pace',
      find: "      if (rule === 'quota') return { granted: false, reason: 'quota', retryInMs: retryAfterMs }\n",
      replace: '',
      tests: pace,
    },
    {
      breaks: 'codes stand in the line of bulk',
      find: '(isUrgent ? urgentPlaces : bulkPlaces)(retryAfterMs, spacingMs)',
      replace: 'bulkPlaces(retryAfterMs, spacingMs)',
      tests: pace,
    },
    {
      breaks: 'all that wait come back together',
      find: 'lastMs = Math.max(nowMs + soonestMs, lastMs + spacingMs)',
      replace: 'lastMs = nowMs + soonestMs',
      tests: [...pace, ...slots],
    },
    {
      breaks: 'a limiter that is away grants',
      find: "return { granted: false, reason: 'limiter', retryInMs: limiterRetryMs }",
      replace: 'return free',
      tests: pace,
    },
    {
      breaks: 'every turn has the same name',
      find: '    const requestId = randomUUID()\n    const fields = { name, to }',
      replace: '    const requestId = to\n    const fields = { name, to }',
      tests: pace,
    },
    // Tries, pauses, routes
    {
      breaks: 'a pause of the provider counts as a try',
      find: "!['throttled', 'not_taken'].includes(outcome))",
      replace: "!['not_taken'].includes(outcome))",
      tests: retry,
    },
    {
      breaks: 'one try more than allowed',
      find: 'return triesLeft(attempts, policy) > 0 &&',
      replace: 'return triesLeft(attempts, policy) >= 0 &&',
      tests: retry,
    },
    {
      breaks: 'an unknown outcome is never repeated',
      find: 'unknowns(attempts).length <= policy.unknownRetries',
      replace: 'unknowns(attempts).length < policy.unknownRetries',
      tests: retry,
    },
    {
      breaks: "a provider's word settles the try of another",
      find: 'open.findLastIndex(({ provider }) => provider === attempt.provider)',
      replace: 'open.length - 1',
      tests: retry,
    },
    {
      breaks: 'pauses have no longest',
      find: 'Math.min(firstPauseMs * 2 ** doublings, longestPauseMs)',
      replace: 'firstPauseMs * 2 ** doublings',
      tests: retry,
    },
    {
      breaks: 'all wait equally long',
      find: 'return fullMs / 2 + (random() * fullMs) / 2\n}',
      replace: 'return fullMs + 0 * random()\n}',
      tests: retry,
    },
    {
      breaks: 'a route for one template takes all',
      find: ' && fits(match.template, template)',
      replace: '',
      tests: retry,
    },
    {
      breaks: 'a route for one app takes all',
      find: ' && fits(match.app, app)',
      replace: '',
      tests: retry,
    },
    {
      breaks: 'a provider of the other channel is called',
      find: 'return provider?.channels.includes(notice.channel) ? [provider] : []',
      replace: 'return provider ? [provider] : []',
      tests: retry,
    },
    {
      breaks: 'weight 0 is drawn',
      find: '    mark -= weight\n    return mark < 0',
      replace: '    mark -= weight\n    return mark <= 0',
      tests: retry,
      mayLive: 'a draw of exactly 0 comes once in 2⁵³',
    },
  ],
}
