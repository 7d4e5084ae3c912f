import { about, type Finding } from '../base/finding.ts'

/** Sixteen random bytes in hexadecimal come to a little more; a password or a sentence cut short does not. */
const enoughBits = 100
const placeholder = /change.?me|secret|passw|example|default|postern|123456|abcdef|qwert/i

const names = ['SECRET', 'SECRET_PREVIOUS', 'BOOTSTRAP_SECRET_KEY'] as const

/**
 * How long the two steps last in which every process has both secrets; docs/operations.md says the same. Pages that verify
 * passes keep the published keys for five minutes. What was sealed for a notice is needed for 7 days and its ttl at most.
 */
export const rotationLasts = {
  prepared: 'until every process has it, and five minutes more',
  swapped: 'for the longer of `retention.recipient` and 7 days with `notice.ttl`',
}

/** Length and strength of the secrets of the environment; says nothing of what stands in them. */
export function examineSecrets(
  env: Readonly<Partial<Record<(typeof names)[number], string | undefined>>>,
): Finding[] {
  const { ok, warning, error } = about('secrets')
  const advice = 'make one with: openssl rand -hex 32'
  const findings = names.flatMap((name) => {
    const value = env[name]
    if (!value) return []
    const bits = bitsOf(value)
    if (bits < enoughBits) {
      return error(
        `${name} can be guessed: about ${Math.floor(bits)} bits, not ${enoughBits}`,
        advice,
      )
    }
    if (placeholder.test(value)) return warning(`${name} reads like words, not like chance`, advice)
    return ok(`${name} is long and looks like chance`)
  })
  if (env.SECRET_PREVIOUS && env.SECRET_PREVIOUS === env.SECRET) {
    findings.push(error('SECRET_PREVIOUS is SECRET', 'leave it out, or set the one before'))
  } else if (env.SECRET_PREVIOUS) {
    const message = 'SECRET_PREVIOUS is set: a secret is being replaced'
    const { prepared, swapped } = rotationLasts
    const advice = `the new one stays there ${prepared}; then swap the two: the old one stays there ${swapped}`
    findings.push(warning(message, advice))
  }
  return findings
}

/**
 * Judged by what stands there alone: each character is worth what its frequency says, and a part that is
 * repeated counts once.
 */
function bitsOf(text: string): number {
  const once = text.slice(0, (text + text).indexOf(text, 1))
  const counts = new Map<string, number>()
  for (const char of once) counts.set(char, (counts.get(char) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= count * Math.log2(count / once.length)
  return bits
}
