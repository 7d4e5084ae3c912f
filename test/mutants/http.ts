import type { MutantRoom } from './mutant.ts'

const protocol = ['test/http/protocol']
const boundaries = ['test/http/boundaries']
const sending = ['test/http/captchas', 'test/http/notices', 'test/http/boundaries']

export const room: MutantRoom = {
  tests: [
    ...protocol,
    ...sending,
    'test/http/problem',
    'test/http/limits',
    'test/http/attempts',
    'test/http/idempotency',
    'test/http/bad-body',
    'test/http/bad-recipient',
    'test/http/body-room',
    'test/http/receipts',
    'test/http/openapi',
    'test/recipient/limitable-address',
    'test/recipient/phone-number',
    'test/http/admin',
    'test/http/bad-text-and-code',
  ],
  mutants: [
    // The door
    {
      breaks: 'the body is read before the key is known',
      find: "const app = route.access === 'key' ? await appOf(request) : ''\n",
      replace:
        "await inputOf(route, request, openBodies.open()).catch(() => {})\n    const app = route.access === 'key' ? await appOf(request) : ''\n",
      tests: protocol,
      mayLive: 'the answer is the same; what it costs is measured by the bench of keyless requests',
    },
    {
      breaks: 'a route for this machine answers everyone',
      find: "if (route.access === 'local' && !isLocalCaller(request)) {",
      replace: "if (route.access === 'open' && !isLocalCaller(request)) {",
      tests: protocol,
    },
    {
      breaks: 'the room of a body is never given back',
      find: '    } finally {\n      share.close()\n    }\n  }\n\n  async function appOf',
      replace: '    } finally {\n      share.take(0)\n    }\n  }\n\n  async function appOf',
      tests: ['test/http/body-room', 'test/http/router'],
    },
    {
      breaks: 'strangers take the room of sends',
      find: 'const share = (app ? keyedBodies : openBodies).open()',
      replace: 'const share = keyedBodies.open()',
      tests: ['test/http/body-room'],
    },
    {
      breaks: 'a wrong key has no WWW-Authenticate',
      find: "throw new Problem('unauthorized', {}, { 'www-authenticate': 'Bearer' })",
      replace: "throw new Problem('unauthorized')",
      tests: protocol,
    },
    {
      breaks: 'the scheme of the key must be written as we do',
      find: '/^Bearer ([\\x21-\\x7e]{1,200})$/i',
      replace: '/^Bearer ([\\x21-\\x7e]{1,200})$/',
      tests: boundaries,
    },
    {
      breaks: 'anything behind a key is ignored',
      find: '/^Bearer ([\\x21-\\x7e]{1,200})$/i',
      replace: '/^Bearer ([\\x21-\\x7e]{1,200})/i',
      tests: protocol,
    },
    {
      breaks: 'a 405 does not say what is allowed',
      find: "new Problem('method_not_allowed', {}, { allow })",
      replace: "new Problem('method_not_allowed')",
      tests: protocol,
    },
    {
      breaks: 'an address that a caller wrote is believed',
      find: "app.set('trust proxy', deps.trustProxyHops)",
      replace: "app.set('trust proxy', true)",
      tests: protocol,
    },
    {
      breaks: 'the address of a proxy is counted instead of its caller',
      find: "app.set('trust proxy', deps.trustProxyHops)",
      replace: "app.set('trust proxy', false)",
      tests: protocol,
    },
    {
      breaks: 'the answer says what made it',
      find: "  app.disable('x-powered-by')\n",
      replace: '',
      mayLive: 'helmet takes the header away too',
      tests: protocol,
    },
    {
      breaks: 'a word instead of an address is a caller of its own',
      find: "return limitableAddress(ip) ?? limitableAddress(socket.remoteAddress ?? '') ?? ''",
      replace: 'return limitableAddress(ip) ?? ip',
      tests: protocol,
    },
    // Bodies
    {
      breaks: 'a body of 16,385 bytes is taken',
      find: 'const maxBodyBytes = 16_384',
      replace: 'const maxBodyBytes = 16_385',
      tests: boundaries,
    },
    {
      breaks: 'a body that is not UTF-8 is repaired',
      find: "  if (!isUtf8(body)) throw bodyProblem('the body is not UTF-8')\n",
      replace: '',
      tests: ['test/http/bad-body', ...boundaries],
    },
    {
      breaks: 'a compressed body is read as it is',
      find: "!['', 'identity'].includes(content)",
      replace: "content === 'zip'",
      tests: ['test/http/bad-body', ...boundaries],
    },
    {
      breaks: 'any JSON-like type is JSON',
      find: '/^application\\/json\\s*(;',
      replace: '/^application\\/json.*(;',
      tests: ['test/http/bad-body', ...boundaries],
    },
    {
      breaks: 'a body that grows past its bound is read on',
      find: 'const isTooLong = length > maxBytes\n',
      replace: 'const isTooLong = length > maxBytes * 100\n',
      tests: [...protocol, 'test/http/body-room'],
    },
    {
      breaks: 'an announced body is read before it is refused',
      find: "  if (Number(request.headers['content-length']) > maxBytes) {\n    return Promise.reject(new Problem('payload_too_large'))\n  }\n",
      replace: '',
      tests: protocol,
    },
    {
      breaks: 'a body that was cut waits for ever',
      find: "      if (!isEnded) reject(bodyProblem('the body ended early'))",
      replace: "      if (isEnded) reject(bodyProblem('the body ended early'))",
      tests: [...protocol, 'test/http/router'],
    },
    {
      breaks: 'a wide body is answered with all of its faults',
      find: 'fieldErrors(parsed.error, place).slice(0, 20)',
      replace: 'fieldErrors(parsed.error, place)',
      tests: [...boundaries, 'test/http/bad-body'],
    },
    {
      breaks: 'a hidden __proto__ is left out without a word',
      find: "if (Object.hasOwn(value, '__proto__')) return '__proto__'\n",
      replace: '',
      tests: ['test/http/bad-body'],
    },
    // Sending
    {
      breaks: 'a destination that is not allowed is invalid',
      find: "result.kind === 'invalid' ? 'invalid_recipient' : 'destination_not_allowed'",
      replace: "result.kind === 'invalid' ? 'invalid_recipient' : 'invalid_recipient'",
      tests: ['test/http/bad-recipient'],
    },
    {
      breaks: 'a caller may set the code',
      find: "    if (Object.hasOwn(body.params, name)) throw invalid(`params.${name}`, 'is set by Postern')\n",
      replace: '    if (name in {}) throw invalid(name, name)\n',
      tests: boundaries,
    },
    {
      breaks: 'a missing variable is found by the worker',
      find: 'if (!Object.hasOwn(body.params, name) && !reserved.includes(name)) {',
      replace: 'if (!Object.hasOwn(body.params, name) && reserved.includes(name)) {',
      tests: ['test/http/bad-text-and-code', 'test/http/idempotency', ...sending],
    },
    {
      breaks: 'an unused variable bypasses the duplicate rule',
      find: 'if (!needed.has(name) && !templates.uses(template, name)) {',
      replace: 'if (!needed.has(name) && templates.uses(template, name)) {',
      tests: ['test/http/bad-text-and-code', 'test/http/bad-body', 'test/http/limits'],
    },
    {
      breaks: 'a send for a channel without a route is accepted',
      find: 'if (!isRouted({ ...from, channel, template })) {',
      replace: 'if (!isRouted({ ...from, channel, template }) && template === "") {',
      tests: ['test/http/openapi'],
    },
    {
      breaks: 'a recipient is shown whole',
      find: '      to: maskRecipient(channel, to),\n      ...more,',
      replace: '      to,\n      ...more,',
      tests: sending,
    },
    {
      breaks: 'an accepted answer has no Location',
      find: 'headers: { location: ',
      replace: "headers: { 'x-location': ",
      tests: sending,
    },
    {
      breaks: 'a captcha without a code in it is sent',
      find: ".has('code')) {",
      replace: ".has('code') && false) {",
      tests: boundaries,
    },
    {
      breaks: 'a code of the wrong length takes a try',
      find: 'if (code.length !== codeLength) throw',
      replace: 'if (code.length < codeLength) throw',
      tests: [...boundaries, 'test/http/bad-text-and-code'],
    },
    {
      breaks: 'the tries left are not told',
      find: "new Problem('code_mismatch', { triesLeft: outcome.triesLeft })",
      replace: "new Problem('code_mismatch', { triesLeft: 0 })",
      tests: ['test/http/captchas'],
    },
    {
      breaks: 'the address of the caller is counted, whatever the body names',
      find: "          ip: body.ip ?? ip,\n          country,\n        })\n        if (outcome.result === 'refused')",
      replace:
        "          ip,\n          country,\n        })\n        if (outcome.result === 'refused')",
      tests: ['test/http/limits'],
    },
    {
      breaks: 'sendAt may be eight days ahead',
      find: 'const furthestAheadMs = 7 * 86_400_000',
      replace: 'const furthestAheadMs = 8 * 86_400_000',
      tests: boundaries,
    },
    {
      breaks: 'a sendAt that has passed is kept',
      find: 'return aheadMs > 0 ? new Date(text) : undefined',
      replace: 'return new Date(text)',
      tests: boundaries,
    },
    {
      breaks: 'a cursor of another app is taken',
      find: 'marks([app, id])',
      replace: 'marks([id])',
      tests: protocol,
    },
    {
      breaks: 'a cursor needs no mark',
      find: '|| !marksOf(app, id).includes(mark)) {',
      replace: '|| marksOf(app, id).length + mark.length === 0) {',
      tests: protocol,
    },
    {
      breaks: 'the last page has a next one',
      find: '...(rows.length > limit && last ?',
      replace: '...(rows.length >= limit && last ?',
      tests: boundaries,
    },
    {
      breaks: 'a page has one item too many',
      find: 'const items = rows.slice(0, limit)',
      replace: 'const items = rows.slice(0, limit + 1)',
      tests: boundaries,
    },
    {
      breaks: 'a recipient without a channel finds everything',
      find: "if (to !== undefined && channel === undefined) throw invalid('channel', 'is needed with to')\n",
      replace: '',
      tests: boundaries,
    },
    {
      breaks: 'an erased recipient is shown as a mask',
      find: 'to: row.recipient === null ? null : maskRecipient(row.channel, row.recipient),',
      replace: "to: maskRecipient(row.channel, row.recipient ?? ''),",
      tests: ['test/http/notices'],
    },
    {
      breaks: 'one key for all routes',
      find: 'const asked = `${route.path} ${canonicalRecord',
      replace: 'const asked = `${route.path.length > 99} ${canonicalRecord',
      tests: ['test/http/idempotency'],
    },
    {
      breaks: 'a refused request keeps its Idempotency-Key',
      find: '      answer instanceof Problem\n        ? idempotency.free(app, key, id)',
      replace: '      answer instanceof Problem\n        ? Promise.resolve()',
      tests: ['test/http/idempotency'],
    },
    {
      breaks: 'an Idempotency-Key of 256 characters is taken',
      find: 'if (!/^[\\x21-\\x7e]{1,255}$/.test(key)) {',
      replace: 'if (!/^[\\x21-\\x7e]{1,256}$/.test(key)) {',
      tests: [...boundaries, 'test/http/idempotency'],
    },
    // Problems
    {
      breaks: 'Retry-After is rounded down',
      find: 'const seconds = String(Math.ceil(retryAfterMs / 1_000))\n',
      replace: 'const seconds = String(Math.floor(retryAfterMs / 1_000))\n',
      tests: ['test/http/problem'],
    },
    {
      breaks: 'a lock names its window',
      find: "? new Problem('locked', shared)",
      replace: "? new Problem('locked', { ...shared, window })",
      tests: ['test/http/problem'],
    },
    {
      breaks: 'the words of a rule are not the detail',
      find: "typeof message === 'string'\n      ? message\n      : (message as Readonly",
      replace:
        "typeof message === 'string'\n      ? problems[code].en\n      : (message as Readonly",
      tests: ['test/http/problem'],
    },
    {
      breaks: 'Chinese is spoken where it is liked as much as English',
      find: "return liking.zh > liking.en ? 'zh' : 'en'",
      replace: "return liking.zh >= liking.en ? 'zh' : 'en'",
      tests: ['test/http/problem', ...protocol],
    },
    {
      breaks: 'an Accept-Language of any length is read',
      find: '|| acceptLanguage.length > maxAcceptLanguageLength) return',
      replace: '|| acceptLanguage.length > 1e9) return',
      tests: ['test/http/problem', ...protocol],
    },
    {
      breaks: 'what Redis refused is our own fault',
      find: "if (error instanceof Unavailable) return new Problem('unavailable', {}, {",
      replace: "if (!(error instanceof Error)) return new Problem('unavailable', {}, {",
      tests: ['test/http/router'],
    },
    // Limits and login attempts
    {
      breaks: 'fields of a caller may name the app',
      find: 'limiter.acquire(policy, { ...fieldsOfApp(app, fields), app }',
      replace: 'limiter.acquire(policy, { app, ...fieldsOfApp(app, fields) }',
      mayLive: 'a body with a field named app is refused by its schema',
      tests: ['test/http/attempts'],
    },
    {
      breaks: "another app's key lifts this app's lock",
      find: '? { ...fields, subject: subjectOfApp(app, String(fields.subject)) }',
      replace: '? { ...fields, subject: String(fields.subject) }',
      tests: ['test/http/attempts'],
    },
    {
      breaks: 'the permits of a request are ignored',
      find: ', app }, { permits }),',
      replace: ', app }, { permits: Math.min(1, permits) }),',
      tests: [...boundaries, 'test/http/attempts'],
    },
    {
      breaks: 'a policy without a lockout is cleared in silence',
      find: "        if (!isCleared) throw invalid('policy', 'has no lockout of a subject')\n",
      replace: '',
      tests: ['test/http/attempts'],
    },
    {
      breaks: 'a missing field of a policy is our own fault',
      find: 'if (error instanceof MissingField) {',
      replace: 'if (error instanceof MissingField && error.field === "") {',
      tests: ['test/http/attempts'],
    },
    // Addresses and numbers
    {
      breaks: 'every address of an IPv6 customer is a caller of its own',
      find: "`${groups.slice(0, 4).join(':')}::/64`",
      replace: "groups.join(':')",
      tests: ['test/recipient/limitable-address'],
    },
    {
      breaks: 'a number has as many limits as spellings',
      find: '? { to: number.number, country: number.country }',
      replace: '? { to: text, country: number.country }',
      tests: ['test/http/bad-recipient', 'test/recipient/phone-number'],
    },
    {
      breaks: 'premium numbers are sent to',
      find: "new Set(['MOBILE', 'FIXED_LINE_OR_MOBILE', 'VOIP'])",
      replace: "new Set(['MOBILE', 'FIXED_LINE_OR_MOBILE', 'VOIP', 'PREMIUM_RATE'])",
      tests: ['test/http/bad-recipient', 'test/recipient/phone-number'],
    },
    {
      breaks: 'a mail address is taken in the case it is written',
      find: '${localPart.toLowerCase()}@${domainPart}',
      replace: '${localPart}@${domainPart}',
      tests: ['test/http/bad-recipient', 'test/http/captchas'],
    },
    {
      breaks: 'a text that turns around is taken',
      find: "/[\\u202a-\\u202e\\u2066-\\u2069]/.test(text) ? 'holds a text direction control' : undefined",
      replace: "/[\\u202a-\\u202d]/.test(text) ? 'holds a text direction control' : undefined",
      tests: ['test/http/bad-text-and-code'],
    },
    // Receipts and the admin port
    {
      breaks: 'a forged receipt is read to its end',
      find: "        throw refused(provider, 'forged')\n      }\n      return reader.maxBodyBytes",
      replace: "        refused(provider, 'forged')\n      }\n      return reader.maxBodyBytes",
      tests: ['test/http/receipts'],
    },
    {
      breaks: 'a forged receipt is not counted',
      find: '    metrics.receipts.inc({ provider, result: reason })\n    return reason',
      replace: '    return reason',
      tests: ['test/http/receipts'],
    },
    {
      breaks: 'a receipt is answered before it is in the database',
      find: 'await takeReceipts(provider, parsed.receipts)',
      replace: 'void takeReceipts(provider, parsed.receipts)',
      tests: ['test/http/receipts'],
    },
    {
      breaks: 'not ready is answered with 200',
      find: "json(503, { status: 'not ready'",
      replace: "json(200, { status: 'not ready'",
      tests: ['test/http/admin', 'test/http/admin-server'],
    },
    {
      breaks: 'stuck is answered with 200',
      find: "json(503, { status: 'stuck', reasons })",
      replace: "json(200, { status: 'stuck', reasons })",
      tests: ['test/http/admin-server', 'test/delivery/worker'],
    },
  ],
}
