import type { MutantRoom } from './mutant.ts'

const rules = ['test/limiter/rules', 'test/limiter/seed', 'test/limiter/traps']
const cluster = ['test/limiter/cluster']

export const room: MutantRoom = {
  tests: [...rules, 'test/limiter/remembered-refusals', 'test/limiter/express'],
  mutants: [
    // The script
    {
      breaks: 'sliding, over Redis: one use more than the limit',
      find: 'local room = window.limit - part.permits\n',
      replace: 'local room = window.limit + 1 - part.permits\n',
    },
    {
      breaks: 'sliding, over Redis: a use leaves one millisecond late',
      find: 'holdOf(leaving + window.ms - now, window)',
      replace: 'holdOf(leaving + window.ms + 1 - now, window)',
    },
    {
      breaks: 'sliding, over Redis: permits of a call count as one',
      find: 'local room = window.limit - part.permits\n    if',
      replace: 'local room = window.limit - 1\n    if',
    },
    {
      breaks: 'sliding, over Redis: every use counts as one permit',
      find: 'while tooMany < uses and (made',
      replace: 'while false and (made',
    },
    {
      breaks: 'sliding, over Redis: the oldest use is the one that must leave',
      find: 'unpack(time, value, first + (tooMany - 1) * size)',
      replace: 'unpack(time, value, first)',
    },
    {
      breaks: 'numbers of uses do not begin anew',
      find: 'return at, made, (made - before) % wrap',
      replace: 'return at, made, made - before',
      tests: ['test/limiter/redis-state'],
    },
    {
      breaks: 'the shortest wait is named',
      find: 'hold = own > hold and own or hold\n',
      replace: 'hold = hold > 0 and hold or own\n',
    },
    {
      breaks: 'of equal waits the last window is named, over Redis',
      find: 'waitMs * 1024 + 1023 - window.index or 0',
      replace: 'waitMs * 1024 + window.index or 0',
    },
    {
      breaks: 'fixed, over Redis: the window goes on for a millisecond',
      find: 'at + window.ms <= now then',
      replace: 'at + window.ms < now then',
      mayLive: 'the value itself ends with its window, by its time to live',
    },
    {
      breaks: 'fixed, over Redis: every use begins the window anew',
      find: 'hold == 0 and pack(last, at, used, 0), at, endsAt',
      replace: 'hold == 0 and pack(last, now, used, 0), now, endsAt',
    },
    {
      breaks: 'calendar, over Redis: a use of the last period counts',
      find: 'if part.endsAt and at < part.startsAt or not',
      replace: 'if not',
    },
    {
      breaks: 'calendar: a period that has ended is decided by',
      find: 'now >= part.endsAt) then\n    return { now }',
      replace: 'now > part.endsAt + 86400000) then\n    return { now }',
    },
    {
      breaks: 'lockout, over Redis: tries during a lock move its end',
      find: '    return holdOf(endsAt - now, part.windows[1])\n',
      replace: '    return holdOf(part.lockMs, part.windows[1])\n',
    },
    {
      breaks: 'lockout, over Redis: a lock has no end at its last millisecond',
      find: 'if endsAt > now and endsAt <= now + part.trustMs then',
      replace: 'if endsAt >= now and endsAt <= now + part.trustMs then',
    },
    {
      breaks: 'lockout, over Redis: locks do not grow',
      find: 'part.growth ^ (locks - 1)',
      replace: 'part.growth ^ 0',
    },
    {
      breaks: 'lockout, over Redis: a grown lock has no longest',
      find: 'math.min(floor(part.lockMs * part.growth ^ (locks - 1)), part.maxLockMs)',
      replace: 'floor(part.lockMs * part.growth ^ (locks - 1))',
    },
    {
      breaks: 'lockout, over Redis: growth is never forgotten',
      find: 'or now - endsAt >= lockMs(part, locks) then',
      replace: 'then',
      mayLive: 'the value itself ends when a lock is forgotten, by its time to live',
    },
    {
      breaks: 'lockout, over Redis: the tries before a lock count after it',
      find: 'return holdOf(ms, part.windows[1]), pack(last, now + ms, locks + 1, 0), now, now + 2 * ms',
      replace:
        'return holdOf(ms, part.windows[1]), pack(timed, now + ms, locks + 1) .. sub(value, part.first), now, now + 2 * ms',
      mayLive: 'a lock outlasts the window in every policy that makes sense',
    },
    {
      breaks: 'what a wrong clock wrote is believed',
      find: 'while at > now + part.trustMs do',
      replace: 'while at > now + part.trustMs * 1000 do',
    },
    {
      breaks: 'uses of one millisecond replace each other',
      find: 'made = (made + part.permits) % wrap\n',
      replace: 'made = (made + (newestAt == at and 0 or part.permits)) % wrap\n',
    },
    {
      breaks: 'a refusal takes from the rules that had room',
      find: 'for p = 1, held == 0 and parts or 0 do',
      replace: 'for p = 1, news[1] and parts or 0 do',
    },
    {
      breaks: 'a rule that observes refuses, over Redis',
      find: "if part.mode == 'observe' then",
      replace: 'if false then',
    },
    {
      breaks: 'a full observed rule takes on where it has room',
      find: 'if full[part.rule] == check then',
      replace: 'if full[part.rule] == check and not news[p] then',
      tests: ['test/limiter/three-engines.test'],
    },
    {
      breaks: 'a resent request takes twice',
      find: "local isKnown = requestKey and call('GET', requestKey)",
      replace: 'local isKnown = false',
    },
    {
      breaks: 'a refused request is remembered as admitted',
      find: '  if held ~= 0 then\n    reply[#reply + 1] = 2 * held + (began == held and 1 or 0)\n  elseif taken then',
      replace:
        '  if held ~= 0 then\n    reply[#reply + 1] = 2 * held + (began == held and 1 or 0)\n  end\n  if taken then',
    },
    {
      breaks: 'a value that is not ours decides',
      find: 'elseif #value < #part.empty or #value % size ~= 4 then',
      replace: 'elseif #value < #part.empty then',
    },
    {
      breaks: 'a value lives for ever',
      find: "call('SET', key, value, 'PXAT', texts[expiresAt])",
      replace: "call('SET', key, value)",
    },
    {
      breaks: 'what another call with the id was told of is taken back',
      find: "if others ~= '' or #memory == head then",
      replace: 'if #memory == head then',
    },
    {
      breaks: 'a call by a known id is not noted',
      find: "    call('APPEND', requestKey, callId)\n",
      replace: '',
    },
    {
      breaks: 'in a cluster lockouts are not asked last',
      find: 'locks(a.check) - locks(b.check) ||',
      replace: '',
      tests: cluster,
    },
    // Giving back, over Redis
    {
      breaks: 'a release gives back more than the request took',
      find: "local rest = uses > permits and pack(timed, at, (made - permits) % wrap) or ''",
      replace: "local rest = ''",
    },
    {
      breaks: 'a release after a reset takes from what came later',
      find: 'value.err or resetAt >= requestedAt then',
      replace: 'value.err then',
    },
    {
      breaks: 'a release gives back rules that were not named',
      find: '  if first > 0 and at > 0 then\n    giveBack',
      replace: '  if at > 0 then\n    giveBack',
    },
    {
      breaks: 'a request is given back twice',
      find: "  redis.call('DEL', KEYS[#KEYS])\nend\nreturn 1",
      replace: 'end\nreturn 1',
    },
    {
      breaks: 'an empty value is kept, and with it the window of a fixed rule',
      find: "  if not rest:sub(1, -5):find('[^%z]') then\n    redis.call('DEL', KEYS[p])\n  elseif",
      replace: '  if',
      mayLive: 'a value without uses counts as nothing used, in every kind',
    },
    // In process
    {
      breaks: 'sliding, in process: one use more than the limit',
      find: 'const room = window.limit - permits\n',
      replace: 'const room = window.limit + 1 - permits\n',
    },
    {
      breaks: 'sliding, in process: a use leaves one millisecond late',
      find: 'holdOf(at + window.windowMs - now, window))',
      replace: 'holdOf(at + window.windowMs + 1 - now, window))',
    },
    {
      breaks: 'fixed, in process: the window goes on for a millisecond',
      find: 'const isOver = leavesAt(part, window, newest(part, uses), now) <= now',
      replace: 'const isOver = leavesAt(part, window, newest(part, uses), now) < now',
    },
    {
      breaks: 'lockout, in process: growth is never forgotten',
      find: ' || now - endsAt >= lockMs(lock, locks)) {',
      replace: ') {',
    },
    {
      breaks: 'a look begins a lock',
      find: 'return (isOpen ? sliding : decide)(part, uses, permits, now).hold',
      replace: 'return decide(part, uses, permits, now).hold',
    },
    {
      breaks: 'uses of one millisecond replace each other, in process',
      find: '=== at) uses[uses.length - 1] = made\n',
      replace: '=== at) uses[uses.length - 1] = permits\n',
    },
    {
      breaks: 'a release in process gives back a use of another time',
      find: 'while (place >= part.first && timeAt(uses, place) !== at) place -= 2\n',
      replace: '',
    },
    {
      breaks: 'in process there is no bound',
      find: 'if (entries.size >= maxSubjects) makeRoom(entries)',
      replace: 'if (entries.size >= maxSubjects * 1_000) makeRoom(entries)',
      tests: ['test/limiter'],
    },
    {
      breaks: 'a refused call in process takes, and is told that it was admitted',
      find: 'if (hold > 0) return { hold, isNewLock: began === hold }\n      const takings: Taking[] = []',
      replace: 'const takings: Taking[] = []',
    },
    {
      breaks: 'a rule that observes refuses, in process',
      find: "else if (mode === 'observe' || check.isSolved) full",
      replace: 'else if (check.isSolved) full',
    },
    // What callers are told
    {
      breaks: 'a rule that observes decides when to come again',
      find: "    if (mode !== 'enforce') continue\n",
      replace: '',
    },
    {
      breaks: 'less than nothing is left',
      find: 'left: Math.max(0, left),',
      replace: 'left,',
    },
    {
      breaks: 'what a rule observes is not told',
      find: "if (!isFull || rule.mode !== 'observe' ||",
      replace: "if (!isFull || rule.mode !== 'enforce' ||",
    },
    {
      breaks: 'a refusal is not counted',
      find: '    options.onRefused?.({ policy, rule: refusal.rule })\n',
      replace: '',
    },
    {
      breaks: 'acquireWithin waits for what can not come in time',
      find: 'if (decision.admitted || performance.now() + decision.retryAfterMs > endsAt)',
      replace: 'if (decision.admitted || performance.now() > endsAt)',
    },
    {
      breaks: 'reset of one rule forgets all of them',
      find: 'rule === undefined || part.rule.name === rule',
      replace: 'rule === undefined || part.rule.name !== undefined',
    },
    {
      breaks: 'permits that can never pass are asked for',
      find: 'if (permits <= policy.maxPermits) return policy',
      replace: 'if (permits <= policy.maxPermits + 1) return policy',
    },
    {
      breaks: 'two subjects run together',
      find: 'seed + canonical(values)',
      replace: "seed + values.join(':')",
    },
    {
      breaks: 'an inherited member is a field',
      find: 'throw new MissingField(policy, rule.name, field, value)\n}',
      replace: "return ''\n}",
    },
    {
      breaks: 'every process counts for itself',
      find: "rule.scope === 'per-client' ? (clientId ?? '') : ''",
      replace: "(clientId ?? '')",
      tests: [...rules, ...cluster],
    },
    // The memory of refusals
    {
      breaks: 'a refusal is remembered after setPolicies',
      find: '      limiter.setPolicies(raw)\n      refusals.forgetAll()\n',
      replace: '      limiter.setPolicies(raw)\n',
      tests: ['test/limiter/remembered-refusals'],
    },
    {
      breaks: 'a refusal that was on its way when the reset came is remembered',
      find: 'if (maxAgeMs === 0 || sentAt <= (forgottenAt.get(subject) ?? othersForgottenAt)) return',
      replace: 'if (maxAgeMs === 0) return',
      tests: ['test/limiter/remembered-refusals'],
    },
    {
      breaks: 'a reset leaves the refusal in memory',
      find: '        refusals.delete(subject)\n',
      replace: '',
      tests: ['test/limiter/remembered-refusals'],
    },
    {
      breaks: 'a refusal of three permits refuses one',
      find: '|| permits < found.permits) continue',
      replace: ') continue',
      tests: ['test/limiter/remembered-refusals'],
    },
    {
      breaks: 'a refusal is remembered for as long as it holds',
      find: 'sentAt + Math.min(refusal.retryAfterMs, maxAgeMs)',
      replace: 'sentAt + refusal.retryAfterMs',
      tests: ['test/limiter/remembered-refusals'],
    },
    {
      breaks: 'a remembered refusal names the wait it had at first',
      find: 'const retryAfterMs = Math.ceil(longest.endsAt - nowMs)',
      replace: 'const retryAfterMs = Math.ceil(longest.refusal.retryAfterMs)',
      tests: ['test/limiter/remembered-refusals'],
    },
    {
      breaks: 'a resend under a known id is refused from memory',
      find: 'if (check.requestId === undefined || asked.isNewRequest) {',
      replace: 'if (check.requestId !== null) {',
    },
    {
      breaks: 'a solved challenge counts for whoever asks in the same tick',
      find: '`${policy.id} ${isSolved} ${asks.map((ask) => ask.permits)}`',
      replace: '`${policy.id} ${asks.map((ask) => ask.permits)}`',
      tests: ['test/limiter/redis-state'],
    },
    {
      breaks: 'permits count for whoever asks in the same tick',
      find: '`${policy.id} ${isSolved} ${asks.map((ask) => ask.permits)}`',
      replace: '`${policy.id} ${isSolved}`',
      tests: ['test/limiter/redis-state'],
    },
    {
      breaks: 'permits that a field holds count for whoever asks in the same tick',
      find: 'times === 1 && !isSolved && !policy.hasPermitsInFields',
      replace: 'times === 1 && !isSolved',
      tests: ['test/limiter/redis-state'],
    },
    {
      breaks: 'one request id is one request in two policies',
      find: 'canonical([policy.name, requestId, ...allKeys])',
      replace: 'canonical([requestId, ...allKeys])',
      tests: ['test/limiter/redis-state'],
    },
    {
      breaks: 'uses that have left are counted as kept',
      find: 'oldest, before = oldest + size, madeThen',
      replace: 'oldest = oldest + size',
      tests: ['test/limiter/three-engines.test'],
    },
    {
      breaks: 'with a key names are a plain hash',
      find: "const keyBlock = key.length > 0 ? createHash('sha256').update(key).digest('hex') : ''",
      replace:
        "const keyBlock = key.length > 0 ? '' : createHash('sha256').update(key).digest('hex')",
      tests: ['test/limiter/redis-state', 'test/crypto'],
    },
    // The cluster
    {
      breaks: 'a later slot fails, and the earlier ones do not give back',
      find: '    for (const slot of takenSlots) calls.giveUp(slot)\n    throw error',
      replace: '    throw error',
      tests: cluster,
    },
    {
      breaks: 'a later slot refuses, and the earlier ones do not give back',
      find: '  await Promise.all(takenSlots.map((slot) => calls.takeBack(slot).catch(() => calls.giveUp(slot))))\n',
      replace: '',
      tests: cluster,
    },
    {
      breaks: 'a lockout in a later slot does not begin its lock',
      find: '    if (own > 0 && lock) return calls.acquire(slot)\n',
      replace: '',
      tests: cluster,
    },
    // Headers
    {
      breaks: '1 ms left is "try again now"',
      find: '    const seconds = Math.max(1, Math.ceil(decision.retryAfterMs / 1_000))\n    headers.RateLimit',
      replace:
        '    const seconds = Math.floor(decision.retryAfterMs / 1_000)\n    headers.RateLimit',
      tests: ['test/limiter/express', 'test/http/problem'],
    },
    {
      breaks: 'the window with most left is shown',
      find: '.sort((a, b) => a.left - b.left)',
      replace: '.sort((a, b) => b.left - a.left)',
      tests: ['test/limiter/express'],
    },
    {
      breaks: 'an answer that arrived while this process was busy is late',
      find: 'setTimeout(() => setImmediate(resolve), timeoutMs)',
      replace: 'setTimeout(resolve, timeoutMs)',
      tests: ['test/base/deadline'],
    },
  ],
}
