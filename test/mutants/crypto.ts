import type { MutantRoom } from './mutant.ts'

export const room: MutantRoom = {
  tests: [
    'test/crypto/secrets',
    'test/crypto/same-secret',
    'test/crypto/standard-webhooks',
    'test/base/canonical',
    'test/base/ids',
  ],
  mutants: [
    {
      breaks: "a code's digest is not keyed by SECRET",
      find: "hmac('sha256', keys.code, text)",
      replace: "hmac('sha256', createSecretKey(Buffer.alloc(32)), text)",
    },
    {
      breaks: 'no code digest of the previous secret',
      find: "return all.map((keys) => hmac('sha256', keys.code",
      replace: "return all.slice(0, 1).map((keys) => hmac('sha256', keys.code",
    },
    {
      breaks: "the previous secret's outputs come first",
      find: '[current, deriveKeys(previousSecret)]',
      replace: '[deriveKeys(previousSecret), current]',
    },
    {
      breaks: "the previous secret's keys are derived from the current one",
      find: 'deriveKeys(previousSecret)]',
      replace: 'deriveKeys(secret)]',
    },
    {
      breaks: "a recipient's hash forgets the channel",
      find: 'canonical([channel, to])',
      replace: 'canonical([to])',
    },
    {
      breaks: 'a subject has a name of the current secret alone',
      find: 'all.map((keys) => keys.subject(text))',
      replace: '[current.subject(text)]',
    },
    {
      breaks: 'a cursor is marked by 24 bits',
      find: "toString('base64url', 0, 16)",
      replace: "toString('base64url', 0, 3)",
    },
    {
      breaks: "cursors are marked by the code's key",
      find: "hmac('sha256', keys.cursor, text)",
      replace: "hmac('sha256', keys.code, text)",
    },
    {
      breaks: 'the duplicate rule joins its parts without saying where one ends',
      find: "hmac('md5', current.dedupe, canonical(parts))",
      replace: "hmac('md5', current.dedupe, parts.join(''))",
    },
    {
      breaks: 'the duplicate rule hashes by SHA-256',
      find: "hmac('md5', current.dedupe",
      replace: "hmac('sha256', current.dedupe",
    },
    {
      breaks: 'one IV for every seal',
      find: 'const iv = randomBytes(ivBytes)',
      replace: 'const iv = Buffer.alloc(ivBytes)',
    },
    {
      breaks: 'a seal opens in another context',
      find: '  cipher.setAAD(Buffer.from(context))',
      replace: "  cipher.setAAD(Buffer.from(''))",
    },
    {
      breaks: 'a tag that was cut is accepted',
      find: ', { authTagLength: tagBytes })',
      replace: ')',
    },
    {
      breaks: 'a seal is not checked at all',
      find: "return plain + decipher.final('utf8')",
      replace: 'return plain',
    },
    {
      breaks: 'what the previous secret sealed does not open',
      find: 'return unsealWith(keys.seal, sealed, context)',
      replace: 'return unsealWith(current.seal, sealed, context)',
    },
    {
      breaks: 'what does not open is empty instead of an error',
      find: '      throw failure\n',
      replace: "      return ''\n",
    },
    {
      breaks: 'every use has the same key',
      find: "'postern', use, 32)",
      replace: "'postern', 'postern', 32)",
    },
    {
      breaks: 'sealing has the key of the limiter',
      find: "derive('notice seal')",
      replace: "derive('limiter subject')",
    },
    {
      breaks: 'the limiter has the key of subjects in Redis',
      find: "derive('limiter subject')",
      replace: "derive('redis subject')",
    },
    {
      breaks: "the limiter's key stays that of the previous secret",
      find: 'limiterKey: current.limiter.export()',
      replace: 'limiterKey: (all[1] ?? current).limiter.export()',
    },
    {
      breaks: 'two secrets are the same when one begins with the other',
      find: 'return a.length === b.length && timingSafeEqual(a, b)',
      replace: 'return a.length <= b.length && timingSafeEqual(a, b.subarray(0, a.length))',
    },
    {
      breaks: 'two secrets of one length are the same',
      find: 'a.length === b.length && timingSafeEqual(a, b)',
      replace: 'a.length === b.length',
    },
    {
      breaks: 'lengths of secrets are compared in characters',
      find: 'return a.length === b.length &&',
      replace: 'return given.length === expected.length &&',
    },
    {
      breaks: "a webhook's body is not signed",
      find: '.update(`${id}.${timestamp}.`).update(body)',
      replace: '.update(`${id}.${timestamp}.`)',
    },
    {
      breaks: "a webhook's moment is not signed",
      find: '.update(`${id}.${timestamp}.`)',
      replace: '.update(`${id}..`)',
    },
    {
      breaks: "a webhook's id is not signed",
      find: '.update(`${id}.${timestamp}.`)',
      replace: '.update(`.${timestamp}.`)',
    },
    {
      breaks: "a webhook's time is rounded up",
      find: 'const timestamp = String(Math.floor(atMs / 1_000))',
      replace: 'const timestamp = String(Math.ceil(atMs / 1_000))',
    },
    {
      breaks: 'an old webhook may be played again',
      find: 'Math.abs(nowMs - Number(timestamp) * 1_000) <= toleranceMs',
      replace: 'Number(timestamp) * 1_000 - nowMs <= toleranceMs',
    },
    {
      breaks: 'a webhook of the far future passes',
      find: 'Math.abs(nowMs - Number(timestamp) * 1_000) <= toleranceMs',
      replace: 'nowMs - Number(timestamp) * 1_000 <= toleranceMs',
    },
    {
      breaks: 'a webhook exactly at its tolerance is refused',
      find: '* 1_000) <= toleranceMs',
      replace: '* 1_000) < toleranceMs',
    },
    {
      breaks: 'a webhook is good for fifty minutes',
      find: 'const toleranceMs = 5 * 60_000',
      replace: 'const toleranceMs = 50 * 60_000',
    },
    {
      breaks: 'only the first of several signatures is looked at',
      find: "signatures.split(' ', 10)",
      replace: "signatures.split(' ', 1)",
    },
    {
      breaks: 'any number of signatures is looked at',
      find: "signatures.split(' ', 10)",
      replace: "signatures.split(' ')",
    },
    {
      breaks: 'every signature must agree',
      find: '.some((one) => isSameSecret(one, expected))',
      replace: '.every((one) => isSameSecret(one, expected))',
    },
    {
      breaks: 'a base64 secret is used as it is written',
      find: "const key = isEncoded ? Buffer.from(secret.slice(prefix.length), 'base64') : secret",
      replace: 'const key = isEncoded ? secret.slice(prefix.length) : secret',
    },
    {
      breaks: 'a secret of fifteen bytes is usable',
      find: 'return isBase64 && key.length >= minKeyBytes',
      replace: 'return isBase64 && key.length >= minKeyBytes - 1',
    },
    {
      breaks: 'a plain secret of fifteen characters is usable',
      find: 'return secret.length >= minKeyBytes',
      replace: 'return secret.length >= minKeyBytes - 1',
    },
    {
      breaks: 'a secret that is no base64 is usable',
      find: 'return isBase64 && key.length',
      replace: 'return key.length',
    },
    {
      breaks: "a part's length is left out",
      find: 'encoded += `${part.length}:${part}`',
      replace: 'encoded += `:${part}`',
    },
    {
      breaks: 'the order of keys makes another message',
      find: 'of Object.keys(record).sort()) parts.push(',
      replace: 'of Object.keys(record)) parts.push(',
    },
    {
      breaks: 'the order of inner keys makes another message',
      find: 'return isObject(value) ? `{${canonicalRecord(value)}}` : JSON.stringify(value)',
      replace: 'return JSON.stringify(isObject(value) ? { ...value } : value)',
    },
    {
      breaks: 'names are cut to 60 bits',
      find: 'const hashLength = 21',
      replace: 'const hashLength = 10',
    },
    {
      breaks: 'names are not keyed',
      find: "hash('sha256', keyBlock + text, 'base64url')",
      replace: "hash('sha256', text, 'base64url')",
    },
    {
      breaks: 'ids do not sort by their time',
      find: "const time = nowMs.toString(16).padStart(12, '0')\n  // Behind",
      replace: "const time = nowMs.toString(16).padEnd(12, '0')\n  // Behind",
    },
    {
      breaks: 'any version of a UUID is an id',
      find: '-7[0-9a-f]{3}-[89ab]',
      replace: '-[0-9a-f]{4}-[89ab]',
    },
    {
      breaks: 'an id with something behind it is an id',
      find: '[0-9a-f]{12}$/.test(text)',
      replace: '[0-9a-f]{12}/.test(text)',
    },
    {
      breaks: 'an id floor lies above ids of its millisecond',
      find: '-0000-0000-000000000000`',
      replace: '-ffff-ffff-ffffffffffff`',
    },
  ],
}
