import type { MutantRoom } from './mutant.ts'

export const room: MutantRoom = {
  tests: [
    'test/captcha/check',
    'test/captcha/send',
    'test/captcha/captcha-events',
    'test/captcha/codes-script',
    'test/captcha/code-store',
    'test/captcha/draw-code',
  ],
  mutants: [
    // Drawing
    {
      breaks: 'leading zeros are lost',
      find: "String(randomInt(10 ** length)).padStart(length, '0')",
      replace: 'String(randomInt(10 ** length))',
    },
    {
      breaks: 'no code begins with zero',
      find: 'String(randomInt(10 ** length))',
      replace: 'String(randomInt(10 ** (length - 1), 10 ** length))',
    },
    {
      breaks: 'the last code is never drawn',
      find: "String(randomInt(10 ** length)).padStart(length, '0')",
      replace: "String(randomInt(10 ** length - 1)).padStart(length, '0').replace(/9$/, '8')",
    },
    // The code store
    {
      breaks: 'a code passes for another scene',
      find: 'const partsOf = (owner: CodeOwner) => [owner.app, owner.scene, owner.channel, owner.to]',
      replace: 'const partsOf = (owner: CodeOwner) => [owner.app, owner.channel, owner.to]',
    },
    {
      breaks: 'a code passes for another app',
      find: 'const partsOf = (owner: CodeOwner) => [owner.app, owner.scene, owner.channel, owner.to]',
      replace: 'const partsOf = (owner: CodeOwner) => [owner.scene, owner.channel, owner.to]',
    },
    {
      breaks: 'a code passes on the other channel',
      find: 'const partsOf = (owner: CodeOwner) => [owner.app, owner.scene, owner.channel, owner.to]',
      replace: 'const partsOf = (owner: CodeOwner) => [owner.app, owner.scene, owner.to]',
    },
    {
      breaks: 'a code made under the previous secret does not pass',
      find: 'for (const key of keysOf(owner)) {\n          const answer = await take',
      replace:
        'for (const key of keysOf(owner).slice(0, 1)) {\n          const answer = await take',
    },
    {
      breaks: 'a resend after a rotation leaves the older code valid',
      find: "const hasOthers = previousKeys.length > 0 ? '1' : '0'",
      replace: "const hasOthers = previousKeys.length > 1 ? '1' : '0'",
    },
    {
      breaks: 'the code under the previous name is not emptied',
      find: 'for (const previousKey of keys.slice(index + 1)) await',
      replace: 'for (const previousKey of keys.slice(index + 2)) await',
    },
    {
      breaks: 'a guess whose answer was lost is not taken back',
      find: "        undo(owner, ['takeBack', requestId])\n",
      replace: '',
    },
    {
      breaks: 'what was lost is taken back only once, at once',
      find: "    unanswered.add(step.join(' '), run)\n",
      replace: '',
    },
    {
      breaks: 'tries left of 0 read as gone',
      find: 'if (answer >= 0) return',
      replace: 'if (answer > 0) return',
    },
    {
      breaks: 'an error of Redis is not Unavailable',
      find: "return await command\n  } catch (error) {\n    throw new Unavailable('redis', error)",
      replace: 'return await command\n  } catch (error) {\n    throw error',
      tests: ['test/captcha/code-store', 'test/flow/every-await'],
    },
    {
      breaks: 'one try more than allowed',
      find: 'const tries = String(triesPerCode)',
      replace: 'const tries = String(triesPerCode + 1)',
    },
    {
      breaks: 'the id that was asked for is ignored',
      find: "const step: Step = ['guess', requestId, noticeId, ...digests]",
      replace: "const step: Step = ['guess', requestId, '', ...digests]",
    },
    // The script
    {
      breaks: 'a new code replaces the one before it before its commit',
      find: "local isPending = #codes > 0 or hasOthers == '1'",
      replace: "local isPending = hasOthers == '1'; if not isPending then codes[1] = nil end",
    },
    {
      breaks: 'what is kept per owner has no bound',
      find: '  if #codes >= maxCodes then table.remove(codes, 2) end\n',
      replace: '',
    },
    {
      breaks: 'the current code is dropped when many are pending',
      find: 'table.remove(codes, 2)',
      replace: 'table.remove(codes, 1)',
    },
    {
      breaks: 'a used code can be settled again',
      find: "if not code or code.state == 'used' or code.tries == 0 then return 0 end",
      replace: 'if not code or code.tries == 0 then return 0 end',
    },
    {
      breaks: 'a code without tries is current',
      find: "if not code or code.state == 'used' or code.tries == 0 then return 0 end",
      replace: "if not code or code.state == 'used' then return 0 end",
    },
    {
      breaks: 'settling leaves the codes before it',
      find: '  for _ = 2, place do table.remove(codes, 1) end\n',
      replace: '',
    },
    {
      breaks: 'a pending code passes',
      find: "if not code or code.state ~= 'current' or code.tries == 0",
      replace: "if not code or code.state == 'used' or code.tries == 0",
    },
    {
      breaks: 'a code is compared without end',
      find: "code.state ~= 'current' or code.tries == 0 or wanted",
      replace: "code.state ~= 'current' or wanted",
    },
    {
      breaks: "another notice's code passes",
      find: "wanted ~= '' and wanted ~= code.id then",
      replace: "wanted == '?' and wanted ~= code.id then",
    },
    {
      breaks: 'a guess is not counted',
      find: 'code.tries, code.takers = code.tries - 1,',
      replace: 'code.tries, code.takers = code.tries,',
    },
    {
      breaks: 'a code passes twice',
      find: "if digest == code.digest then code.state = 'used' end",
      replace: 'if digest == code.digest then return code.id, true end',
    },
    {
      breaks: 'only the digest of the current secret is compared',
      find: 'for _, digest in ipairs({ ... }) do if digest',
      replace: 'for _, digest in ipairs({ (...) }) do if digest',
    },
    {
      breaks: 'taking back a wrong guess makes a used code valid',
      find: "if code.state == 'used' and to == #code.takers then",
      replace: "if code.state == 'used' then",
    },
    {
      breaks: 'a right code whose answer was lost stays used up',
      find: "      if code.state == 'used' and to == #code.takers then code.state = 'current' end\n",
      replace: '',
    },
    {
      breaks: 'a try that is taken back is not given back',
      find: 'code.tries, code.takers = code.tries + 1, code.takers:sub(1, from)',
      replace: 'code.tries, code.takers = code.tries, code.takers:sub(1, from)',
    },
    {
      breaks: 'a guess is taken back twice',
      find: 'code.takers:sub(1, from) .. code.takers:sub(to + 1)',
      replace: 'code.takers',
    },
    {
      breaks: 'an expired code passes while a newer one keeps its key alive',
      find: 'if code.ends > now then table.insert(codes, code) end',
      replace: 'table.insert(codes, code)',
    },
    {
      breaks: 'a wrong guess lengthens the life of a code',
      find: "cjson.encode(codes), 'KEEPTTL')",
      replace: "cjson.encode(codes), 'PX', 300000)",
    },
    {
      breaks: 'forgetting takes the newest code, whichever was meant',
      find: 'return place and 1 or 0, place and table.remove(codes, place)',
      replace: 'return place and 1 or 0, place and table.remove(codes)',
    },
    {
      breaks: 'the script goes by a clock in seconds',
      find: 'local now = clock[1] * 1000 + math.floor(clock[2] / 1000)\nlocal maxCodes',
      replace: 'local now = clock[1] * 1000 + 999 + clock[2] * 0\nlocal maxCodes',
      mayLive: 'a code that ends up to a second early',
    },
    // Sending
    {
      breaks: 'the code is remembered after the commit',
      find: 'const isPending = await codes.remember(notice, notice.id, digits, refund)\n',
      replace:
        'const isPending = true\n    setTimeout(() => void codes.remember(notice, notice.id, digits), 50)\n',
    },
    {
      breaks: 'minutes are rounded down',
      find: 'const minutes = Math.ceil(code.ttlMs / 60_000)',
      replace: 'const minutes = Math.floor(code.ttlMs / 60_000)',
    },
    {
      breaks: 'the caller may set the code',
      find: '{ ...request.params, code: digits, minutes, validity }',
      replace: '{ code: digits, minutes, validity, ...request.params }',
    },
    {
      breaks: 'the new code stays pending after the commit',
      find: '    if (isPending) {\n      await codes.settle',
      replace: '    if (!isPending) {\n      await codes.settle',
    },
    {
      breaks: 'a failed commit keeps the quota of a captcha',
      find: '        codes.forget(notice, notice.id)\n        quota.release(policy, fields, notice.id)\n',
      replace: '        codes.forget(notice, notice.id)\n',
    },
    {
      breaks: 'a failed commit leaves the code',
      find: '        codes.forget(notice, notice.id)\n        quota',
      replace: '        quota',
    },
    {
      breaks: 'resendAt is when the row was made',
      find: 'const resendAt = new Date(created.createdAt.getTime() + decision.nextInMs)\n        return { accepted: true, notice: created, resendAt }\n      } catch (error) {\n        codes',
      replace:
        'const resendAt = new Date(created.createdAt.getTime())\n        return { accepted: true, notice: created, resendAt }\n      } catch (error) {\n        codes',
    },
    {
      breaks: 'a captcha without its code is adopted',
      find: 'if (adopted.isOpen && !(await codes.settle(notice, notice.id))) return null',
      replace: 'if (adopted.isOpen) await codes.settle(notice, notice.id)',
    },
    {
      breaks: 'a captcha that was sent is not adopted once its code is used',
      find: 'if (adopted.isOpen && !(await codes.settle',
      replace: 'if (!(await codes.settle',
    },
    // Checking
    {
      breaks: 'no give-back when the guess throws',
      find: "      quota.release('check', fields, requestId)\n",
      replace: '',
    },
    {
      breaks: 'a refused guess is compared all the same',
      find: "if (!decision.admitted) return { result: 'refused', refusal: decision }\n\n    let guess",
      replace:
        "if (!decision.admitted) await codes.guess(request, request.code, request.id)\n    if (!decision.admitted) return { result: 'refused', refusal: decision }\n\n    let guess",
    },
    {
      breaks: 'a check ignores the id',
      find: 'await codes.guess(request, request.code, request.id)\n    } catch',
      replace: 'await codes.guess(request, request.code)\n    } catch',
    },
    {
      breaks: 'a right code forgives nothing',
      find: "if (guess.result === 'passed') forgive(fields, requestId)",
      replace: "if (guess.result === 'gone') forgive(fields, requestId)",
    },
    {
      breaks: 'any code forgives',
      find: "if (guess.result === 'passed') forgive(fields, requestId)",
      replace: "if (guess.result !== 'gone') forgive(fields, requestId)",
    },
    {
      breaks: 'a success resets every rule of check',
      find: "    const isCleared = (rule: Rule) => rule.kind === 'lockout' && rule.fields.includes('to')",
      replace: "    const isCleared = (rule: Rule) => rule.fields.includes('to')",
    },
    {
      breaks: 'a success resets lock-outs of addresses too',
      find: "    const isCleared = (rule: Rule) => rule.kind === 'lockout' && rule.fields.includes('to')",
      replace: "    const isCleared = (rule: Rule) => rule.kind === 'lockout'",
    },
    {
      breaks: 'a right code counts in a rule that asks for a challenge',
      find: "    const isUncounted = (rule: Rule) => rule.kind === 'lockout' || rule.mode === 'challenge'",
      replace: "    const isUncounted = (rule: Rule) => rule.kind === 'lockout'",
    },
    {
      breaks: 'a pass gives nothing back to the rules of its send',
      find: "if (guess.result === 'passed' && guess.onPass)",
      replace: "if (guess.result === 'passed' && guess.onPass === '')",
    },
    {
      breaks: 'a pass counts as a guess of its address',
      find: 'if (others.length > 0) quota.release',
      replace: 'if (others.length > 99) quota.release',
    },
    {
      breaks: 'a success gives back every rule of the check',
      find: "quota.release('check', fields, requestId, others)",
      replace: "quota.release('check', fields, requestId)",
    },
    {
      breaks: 'a lock is told each time it is met',
      find: 'outcome.refusal.isNewLock',
      replace: "outcome.refusal.kind === 'lockout'",
    },
    {
      breaks: 'checks are not counted by result',
      find: 'metrics.checks.inc({ result: outcome.result })',
      replace: "metrics.checks.inc({ result: 'passed' })",
    },
    {
      breaks: 'a check counts without its address',
      find: 'return { to, channel, scene, app, ip, country, prefix',
      replace: "return { to, channel, scene, app, ip: '', country, prefix",
    },
    // What is counted
    {
      breaks: 'the duplicate rule without the template',
      find: 'canonical([to, template, canonicalRecord(asRendered(params))])',
      replace: 'canonical([to, canonicalRecord(asRendered(params))])',
    },
    {
      breaks: 'the duplicate rule without the recipient',
      find: 'canonical([to, template, canonicalRecord(asRendered(params))])',
      replace: 'canonical([template, canonicalRecord(asRendered(params))])',
    },
    {
      breaks: 'the duplicate rule without the variables',
      find: 'canonical([to, template, canonicalRecord(asRendered(params))])',
      replace: 'canonical([to, template, Object.keys(params).join()])',
    },
    {
      breaks: '7 and "7" are two messages',
      find: 'canonicalRecord(asRendered(params))',
      replace: 'canonicalRecord(params)',
    },
    {
      breaks: 'a rule that counts by scene counts all of them together',
      find: "const { to, channel, scene = '', app } = asked",
      replace: "const { to, channel, app } = asked\n    const scene = ''",
    },
    // Announcing
    {
      breaks: 'a lock is announced by every process that meets it',
      find: "Math.max(1, Math.ceil(retryAfterMs)), 'NX')",
      replace: 'Math.max(1, Math.ceil(retryAfterMs)))',
    },
    {
      breaks: 'a lock of one app hides that of another',
      find: "['locked', owner.app, rule, owner.channel, owner.to]",
      replace: "['locked', rule, owner.channel, owner.to]",
    },
    {
      breaks: 'the lock of one rule hides that of another',
      find: "['locked', owner.app, rule, owner.channel, owner.to]",
      replace: "['locked', owner.app, owner.channel, owner.to]",
    },
    {
      breaks: 'a lock of no whole milliseconds is never announced',
      find: 'Math.max(1, Math.ceil(retryAfterMs))',
      replace: 'retryAfterMs',
    },
    {
      breaks: 'unwanted passes are written',
      find: "if (!types.includes('captcha.passed')) return\n",
      replace: '',
    },
    {
      breaks: 'unwanted locks are written',
      find: "if (!types.includes('captcha.locked')) return\n",
      replace: '',
    },
    {
      breaks: 'an event that could not be written is lost',
      find: 'const tries = 60\n',
      replace: 'const tries = 1\n',
    },
    {
      breaks: 'the recipient of a captcha event is readable',
      find: 'to: maskRecipient(channel, to),\n    scene,',
      replace: 'to,\n    scene,',
    },
  ],
}
