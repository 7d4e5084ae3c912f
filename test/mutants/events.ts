import type { MutantRoom } from './mutant.ts'

export const room: MutantRoom = {
  tests: ['test/events/outbox', 'test/events/dispatcher', 'test/notice/outbox'],
  mutants: [
    {
      breaks: 'events are taken before they are due',
      find: 'SELECT id FROM event WHERE due_at <= now() ORDER',
      replace: 'SELECT id FROM event ORDER',
    },
    {
      breaks: 'the youngest event is taken first',
      find: 'WHERE due_at <= now() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)\n  RETURNING id, app, type',
      replace:
        'WHERE due_at <= now() ORDER BY due_at DESC LIMIT $1 FOR UPDATE SKIP LOCKED)\n  RETURNING id, app, type',
    },
    {
      breaks: 'a take does not count as a try',
      find: 'SET tries = tries + 1,',
      replace: 'SET tries = tries,',
    },
    {
      breaks: 'a taken event stays due',
      find: "SET tries = tries + 1, due_at = now() + $2 * interval '1 millisecond'",
      replace: 'SET tries = tries + 1, due_at = CASE WHEN $2 > 0 THEN now() END',
    },
    {
      breaks: 'every try is the last',
      find: 'created_at < now() - $3 * interval',
      replace: 'created_at < now() + $3 * interval',
    },
    {
      breaks: 'the last try is counted from when it is due',
      find: 'created_at < now() - $3 * interval',
      replace: 'due_at < now() - $3 * interval',
    },
    {
      breaks: 'all events that come again get one pause',
      find: 'again.map(({ pauseMs }) => pauseMs),',
      replace: 'again.map(() => again[0]?.pauseMs),',
    },
    {
      breaks: 'what was told is not removed',
      find: "if (gone.length > 0) await database.query('event-remove'",
      replace: "if (gone.length > 1) await database.query('event-remove'",
    },
    {
      breaks: 'what was not taken is only due again after its lease',
      find: 'if (again.length > 0) {\n        await database',
      replace: 'if (again.length > 1) {\n        await database',
    },
    {
      breaks: 'the age of the oldest event is that of the youngest',
      find: 'now() - min(created_at)))::float8 AS seconds FROM event',
      replace: 'now() - max(created_at)))::float8 AS seconds FROM event',
    },
    {
      breaks: 'an event from the future has a negative age',
      find: 'greatest(0, extract(epoch FROM now() - min(created_at)))::float8 AS seconds FROM event',
      replace: 'extract(epoch FROM now() - min(created_at))::float8 AS seconds FROM event',
    },
    {
      breaks: 'a receiver that names no types wants none',
      find: 'types?.includes(type) ?? true))',
      replace: 'types?.includes(type) ?? false))',
    },
    {
      breaks: 'events go to receivers of other apps',
      find: '(each.app?.includes(app) ?? true) && (each.types',
      replace: '(each.types',
    },
    {
      breaks: 'events go to receivers of other types',
      find: '(each) => (each.app?.includes(app) ?? true) && (each.types?.includes(type) ?? true)',
      replace: '(each) => each.app?.includes(app) ?? true',
    },
    {
      breaks: 'an event that no receiver wants stays for ever',
      find: 'if (!receiver) return undefined',
      replace: 'if (!receiver) return pauseAfterMs(tries)',
    },
    {
      breaks: 'a silent receiver is called all the same',
      find: '    if (silentForMs > 0) {\n',
      replace: '    if (silentForMs > leftAloneMs) {\n',
    },
    {
      breaks: 'the events of a silent receiver go round and round',
      find: 'return Math.max(silentForMs + Math.random() * pollMs, pauseAfterMs(tries))',
      replace: 'return silentForMs + Math.random() * pollMs',
    },
    {
      breaks: 'the events of a silent receiver come back before its time is over',
      find: 'return Math.max(silentForMs + Math.random() * pollMs, pauseAfterMs(tries))',
      replace: 'return pauseAfterMs(tries)',
      mayLive: 'the first pause may be as long as the rest of its time; nothing is called sooner',
    },
    {
      breaks: 'the last try of an event for a silent receiver never comes',
      find: '      if (isLast) return giveUp(event)\n      // A pause',
      replace: '      // A pause',
    },
    {
      breaks: 'all events ask at once whether a silent receiver is back',
      find: 'if (silentUntilMs.has(receiver)) silentUntilMs.set',
      replace: 'if (!silentUntilMs.has(receiver)) silentUntilMs.set',
    },
    {
      breaks: 'an answer does not end the silence of a receiver',
      find: "if (outcome.kind === 'answered') silentUntilMs.delete(receiver)",
      replace:
        "if (outcome.kind === 'answered' && outcome.status < 300) silentUntilMs.delete(receiver)",
    },
    {
      breaks: 'a redirection counts as taken',
      find: 'outcome.status >= 200 && outcome.status < 300',
      replace: 'outcome.status >= 200 && outcome.status < 400',
    },
    {
      breaks: 'any answer counts as taken',
      find: "outcome.kind === 'answered' && outcome.status >= 200 && outcome.status < 300",
      replace: "outcome.kind === 'answered' && outcome.status >= 200",
    },
    {
      breaks: 'an event is never given up',
      find: "    if (isLast) return giveUp(event)\n    metrics.events.inc({ type, outcome: 'failed' })",
      replace: "    metrics.events.inc({ type, outcome: 'failed' })",
    },
    {
      breaks: 'pauses do not grow',
      find: 'firstPauseMs * 2 ** Math.min(tries - 1, 20), longestPauseMs',
      replace: 'firstPauseMs, longestPauseMs',
    },
    {
      breaks: 'pauses start doubled',
      find: 'firstPauseMs * 2 ** Math.min(tries - 1, 20)',
      replace: 'firstPauseMs * 2 ** Math.min(tries, 20)',
    },
    {
      breaks: 'pauses grow without end',
      find: 'Math.min(firstPauseMs * 2 ** Math.min(tries - 1, 20), longestPauseMs)',
      replace: 'firstPauseMs * 2 ** Math.min(tries - 1, 20)',
    },
    {
      breaks: 'an event is told with the time of the telling',
      find: 'timestamp: createdAt.toISOString(), data',
      replace: 'timestamp: new Date().toISOString(), data',
    },
    {
      breaks: 'a repeat has an id of its own',
      find: 'signWebhook(receiver.secret, id, Date.now(), body)',
      replace: 'signWebhook(receiver.secret, `${id}-${tries}`, Date.now(), body)',
    },
    {
      breaks: 'another worker takes an event while the call may still last',
      find: 'const leaseMs = 3 * timeoutMs',
      replace: 'const leaseMs = timeoutMs / 2',
    },
    {
      breaks: 'a full pass waits a second for the next',
      find: 'return events.length === perPass ? 0 : pollMs',
      replace: 'return pollMs',
    },
    {
      breaks: 'a pass that failed is the last',
      find: "log.backgroundFailed('events', error)\n      return pollMs\n",
      replace: "log.backgroundFailed('events', error)\n      return 1e9\n",
    },
    {
      breaks: 'after stop another pass begins',
      find: '    if (!stopping.signal.aborted) schedule(pauseMs',
      replace: '    schedule(pauseMs',
      tests: ['test/base/repeat', 'test/events/dispatcher'],
    },
    {
      breaks: 'stop does not wait for the pass under way',
      find: '      clearTimeout(timer)\n      await running\n',
      replace: '      clearTimeout(timer)\n',
      tests: ['test/base/repeat', 'test/events/dispatcher'],
    },
    {
      breaks: 'giving up is counted as failing',
      find: "outcome: 'given_up'",
      replace: "outcome: 'failed'",
    },
    {
      breaks: 'every move writes an event, wanted or not',
      find: " WHERE 'notice.' || state IN (${wanted",
      replace:
        " WHERE 'notice.' || state NOT IN ('notice.pending') OR 'notice.' || state IN (${wanted",
    },
    {
      breaks: 'a recipient stands readable in an event',
      find: "'to', ${maskedRecipient},",
      replace: "'to', recipient,",
    },
    {
      breaks: 'an event is written for the wrong app',
      find: "SELECT app, 'notice.' || state, ${eventData}",
      replace: "SELECT kind, 'notice.' || state, ${eventData}",
    },
    {
      breaks: "an event leaves out the provider's message id",
      find: "'provider', provider,\n      'providerMessageId', provider_message_id,",
      replace: "'provider', provider,",
    },
    {
      breaks: 'a short number is shown whole in an event',
      find: 'least(5, greatest(2, length(recipient) - 8))',
      replace: 'least(5, greatest(4, length(recipient) - 6))',
    },
  ],
}
