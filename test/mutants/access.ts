import type { MutantRoom } from './mutant.ts'

export const room: MutantRoom = {
  tests: ['test/access/'],
  mutants: [
    {
      breaks: 'the memory of a revoked key is kept while PostgreSQL is away',
      find: '    known.delete(token)\n',
      replace: '',
    },
    {
      breaks: 'a revoked key is found',
      find: 'hash = ANY($1::bytea[]) AND (revoked_at IS NULL OR revoked_at > now())',
      replace: 'hash = ANY($1::bytea[])',
    },
    {
      breaks: 'what PostgreSQL said of a key is good for ever',
      find: 'if (right && right.freshUntilMs > nowMs) return right.key',
      replace: 'if (right && right.freshUntilMs > 0) return right.key',
    },
    {
      breaks: 'PostgreSQL is asked for every request',
      find: 'if (right && right.freshUntilMs > nowMs) return right.key',
      replace: 'if (right && right.freshUntilMs < nowMs) return right.key',
    },
    {
      breaks: 'an unknown key is unknown for ever',
      find: 'if (isWrong && isWrong.freshUntilMs > nowMs) return null',
      replace: 'if (isWrong) return null',
    },
    {
      breaks: 'wrong keys are not remembered',
      find: '    wrong.set(token, { freshUntilMs: askedAtMs + wrongFreshMs })\n',
      replace: '',
    },
    {
      breaks: 'the memory of wrong keys has no bound',
      find: '    if (wrong.size >= maxWrong) wrong.clear()\n',
      replace: '',
    },
    {
      breaks: 'a flood of wrong keys pushes out the right ones',
      find: 'if (wrong.size >= maxWrong) wrong.clear()',
      replace: 'if (wrong.size >= maxWrong) known.clear()',
    },
    {
      breaks: 'a hundred requests ask a hundred times',
      find: '      asking.set(token, answer)\n',
      replace: '',
    },
    {
      breaks: 'one answer about a key is given for ever',
      find: '.finally(() => asking.delete(token))',
      replace: '',
    },
    {
      breaks: 'made-up keys cost a statement',
      find: 'if (!right && !given.has(token) && !keyKindOf(token)) return null',
      replace: 'if (!right && !given.has(token) && token.length > 500) return null',
    },
    {
      breaks: "the operator's own key needs a checksum",
      find: 'if (!right && !given.has(token) && !keyKindOf(token)) return null',
      replace: 'if (!right && !keyKindOf(token)) return null',
    },
    {
      breaks: 'a given key is forgotten when PostgreSQL could not be told',
      find: '      given.add(token)\n      await store.insert(token, facts)',
      replace: '      await store.insert(token, facts)\n      given.add(token)',
    },
    {
      breaks: 'any number of unknown keys waits for PostgreSQL',
      find: 'if (!right && asking.size >= maxAsking)',
      replace: 'if (!right && asking.size >= maxAsking * 1_000)',
    },
    {
      breaks: 'a known key is turned away while strangers wait',
      find: 'if (!right && asking.size >= maxAsking)',
      replace: 'if (asking.size >= maxAsking)',
    },
    {
      breaks: 'known keys wait behind strangers',
      find: 'isKnown ? lookUpKnown(hash) : lookUpStranger(hash)',
      replace: 'lookUpStranger(hash)',
    },
    {
      breaks: 'a slow PostgreSQL holds up known keys',
      find: 'if (!right) return await answer\n',
      replace: 'if (!right || answer) return await answer\n',
    },
    {
      breaks: 'a known key is refused while PostgreSQL is away',
      find: 'if (error instanceof Unavailable && (right || isWrong)) return right?.key ?? null',
      replace: 'if (error instanceof Unavailable && isWrong) return null',
    },
    {
      breaks: 'an unknown key is wrong while PostgreSQL is away',
      find: 'if (error instanceof Unavailable && (right || isWrong)) return right?.key ?? null',
      replace: 'if (error instanceof Unavailable) return right?.key ?? null',
    },
    {
      breaks: 'the same app for every key of a statement',
      find: "keys.get(hash.toString('hex')) ?? null)",
      replace: 'keys.values().next().value ?? null)',
    },
    {
      breaks: 'a key is stored readable',
      find: "return createHash('sha256').update(token).digest()",
      replace: 'return Buffer.from(token)',
    },
    {
      breaks: 'ensure makes a second row',
      find: 'const values = [id, app, name, kind, hashOf(token), prefix, origins]',
      replace: 'const values = [id, app, name, kind, hashOf(token + id), prefix, origins]',
    },
    {
      breaks: 'a key that was unknown is unknown after it was made here',
      find: '      await store.insert(token, facts)\n      wrong.delete(token)',
      replace: '      await store.insert(token, facts)',
    },
    {
      breaks: 'keys are listed oldest first',
      find: 'factsSql} ORDER BY id DESC',
      replace: 'factsSql} ORDER BY id',
    },
    {
      breaks: 'revoking again moves the time',
      find: 'SET revoked_at = LEAST(revoked_at, now())',
      replace: 'SET revoked_at = now()',
    },
    {
      breaks: 'revoking twice is a failure',
      find: 'LEAST(revoked_at, now()) WHERE id = $1 RETURNING',
      replace: 'LEAST(revoked_at, now()) WHERE id = $1 AND revoked_at IS NULL RETURNING',
    },
    {
      breaks: 'a revoked key may pass for five seconds',
      find: 'const defaultFreshMs = 700',
      replace: 'const defaultFreshMs = 5_000',
    },
    {
      breaks: 'a key that is replaced ends at once',
      find: "SET revoked_at = now() + $2 * interval '1 millisecond'",
      replace: 'SET revoked_at = now()',
    },
    {
      breaks: 'a key is rotated twice',
      find: 'WHERE id = $1 AND revoked_at IS NULL\n    RETURNING app',
      replace: 'WHERE id = $1\n    RETURNING app',
    },
    {
      breaks: 'a key that has no checksum shows how it begins',
      find: "const prefix = keyKindOf(token) ? shownPrefixOf(token) : ''",
      replace: 'const prefix = shownPrefixOf(token)',
    },
    {
      breaks: 'every use is written',
      find: 'if (before !== undefined && nowMs - before < everyMs) return',
      replace: '',
    },
    {
      breaks: 'a use that could not be written is a fault',
      find: 'write(keyId).catch(() => {})',
      replace: 'void write(keyId)',
    },
    {
      breaks: 'every process writes every use',
      find: "(last_used_at IS NULL OR last_used_at < now() - interval '30 seconds')",
      replace: 'true',
    },
    {
      breaks: 'origins are asked for at every question',
      find: 'if (!asking && performance.now() - askedAtMs >= freshMs)',
      replace: 'if (!asking)',
    },
    {
      breaks: 'the origins of ended keys are listed',
      find: "WHERE kind = 'publishable' AND (revoked_at IS NULL OR revoked_at > now())",
      replace: "WHERE kind = 'publishable'",
    },
    {
      breaks: 'an origin with a path is cut to its host',
      find: 'if (/[/?#\\\\]/.test(rest)) {',
      replace: "if (rest === '/') {",
    },
    {
      breaks: 'an origin is kept as it was written',
      find: 'return { ok: true, origin: url.origin }',
      replace: 'return { ok: true, origin: text }',
    },
    {
      breaks: 'a key has any number of origins',
      find: 'if (texts.length > maxOrigins) {',
      replace: 'if (texts.length > maxOrigins * 10) {',
    },
    {
      breaks: 'a key of another shape has a kind',
      find: 'if (!/^[a-z]{3}_[\\w-]{49}$/.test(token)) return undefined',
      replace: '',
    },
    {
      breaks: 'the checksum is not looked at',
      find: 'return isWhole ? kindByPrefix.get(token.slice(0, 4)) : undefined',
      replace: 'return isWhole || token ? kindByPrefix.get(token.slice(0, 4)) : undefined',
    },
    {
      breaks: 'the checksum leaves out the kind',
      find: 'checksumOf(token.slice(0, -checksumLength)) === token.slice(-checksumLength)',
      replace:
        "checksumOf('psk_' + token.slice(4, -checksumLength)) === token.slice(-checksumLength)",
    },
    {
      breaks: 'a key of 8 random bytes',
      find: "const body = prefixes[kind] + randomBytes(32).toString('base64url')",
      replace: "const body = prefixes[kind] + randomBytes(8).toString('base64url').padEnd(43, 'A')",
    },
    {
      breaks: 'every kind has the prefix of a secret key',
      find: 'const body = prefixes[kind] +',
      replace: 'const body = prefixes.secret +',
    },
  ],
}
