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
      find: 'hash = ANY($1::bytea[]) AND revoked_at IS NULL',
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
      find: '    wrong.set(token, { freshUntilMs })\n',
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
      find: '        asking.set(token, answer)\n',
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
      find: '      given.add(token)\n      await insert(token, facts)',
      replace: '      await insert(token, facts)\n      given.add(token)',
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
      find: "return createHash('sha256').update(token).digest() as",
      replace: 'return Buffer.from(token) as',
    },
    {
      breaks: 'ensure makes a second row',
      find: 'createMany({ data, skipDuplicates: true })',
      replace: 'createMany({ data: { ...data, hash: hashOf(token + id) } })',
    },
    {
      breaks: 'a key that was unknown is unknown after it was made here',
      find: '    wrong.delete(token)\n    return id',
      replace: '    return id',
    },
    {
      breaks: 'keys are listed oldest first',
      find: "findMany({ orderBy: { id: 'desc' }, omit: { hash: true } })",
      replace: "findMany({ orderBy: { id: 'asc' }, omit: { hash: true } })",
    },
    {
      breaks: 'revoking again moves the time',
      find: 'where: { id, revokedAt: null },',
      replace: 'where: { id },',
    },
    {
      breaks: 'revoking twice is a failure',
      find: '      if (count > 0) return true\n      return (await',
      replace: '      if (count > 0 || count === 0) return count > 0\n      return (await',
    },
    {
      breaks: 'a revoked key may pass for a minute',
      find: 'const defaultFreshMs = 5_000',
      replace: 'const defaultFreshMs = 60_000',
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
      find: "randomBytes(32).toString('base64url')",
      replace: "randomBytes(8).toString('base64url').padEnd(43, 'A')",
    },
    {
      breaks: 'every kind has the prefix of a secret key',
      find: 'const body = prefixes[kind] +',
      replace: 'const body = prefixes.secret +',
    },
  ],
}
