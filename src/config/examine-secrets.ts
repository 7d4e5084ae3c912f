import { about, type Finding } from '../base/finding.ts'

/** Sixteen random bytes in hexadecimal have a little more. A password or a short sentence has less. */
const enoughBits = 100
const placeholder = /change.?me|secret|passw|example|default|postern|123456|abcdef|qwert/i

const names = ['SECRET', 'SECRET_PREVIOUS', 'BOOTSTRAP_SECRET_KEY'] as const

/**
 * The lengths of the two steps in which every process has both secrets; docs/operations.md has the same. Pages cache
 * the published keys for five minutes. Sealed data of a notice is needed for 7 days plus its ttl at most.
 */
export const rotationLasts = {
  prepared: 'until every process has it, and five minutes more',
  swapped:
    'the longest of `retention.recipient`, of 7 days plus the longest `ttl` of your notices, and of `recipients.suppress`',
}

/** Checks length and strength of the secrets. Findings do not show them. `ofFile`: secrets of the policy file. */
export function examineSecrets(
  env: Readonly<Partial<Record<(typeof names)[number], string | undefined>>>,
  ofFile: Readonly<Record<string, string>> = {},
): Finding[] {
  const { ok, warning, error } = about('secrets')
  const advice = 'make one with: openssl rand -hex 32'
  const all = [...names.map((name) => [name, env[name]] as const), ...Object.entries(ofFile)]
  const findings = all.flatMap(([name, value]) => {
    if (!value) return []
    const bits = bitsOf(value)
    if (bits < enoughBits) {
      return error(
        `${name} can be guessed: about ${Math.floor(bits)} bits, and ${enoughBits} are needed`,
        advice,
      )
    }
    if (isWrapped(value)) {
      return warning(
        `${name} begins or ends with quotes, spaces or a line break, which are a part of it`,
        'give every process exactly the same text; remove them only before the first code is sent',
      )
    }
    if (placeholder.test(value))
      return warning(`${name} contains words instead of random characters`, advice)
    return ok(`${name} is long and looks random`)
  })
  if (env.SECRET_PREVIOUS && env.SECRET_PREVIOUS === env.SECRET) {
    findings.push(
      error('SECRET_PREVIOUS equals SECRET', 'remove it, or set it to the previous secret'),
    )
  } else if (env.SECRET_PREVIOUS) {
    const message = 'SECRET_PREVIOUS is set: a secret is being replaced'
    const { prepared, swapped } = rotationLasts
    const advice = `keep the new secret in it ${prepared}; then swap the two values, and keep the old secret in it for ${swapped}`
    findings.push(warning(message, advice))
  }
  return findings
}

/** `docker run --env-file` keeps quotes, and secrets of Kubernetes keep the line break of a file. `.env` keeps neither. */
const isWrapped = (text: string) =>
  text !== text.trim() || (/^["']/.test(text) && text.at(0) === text.at(-1))

/** Estimates the bits from the text alone: each character counts by its frequency, and a repeated part counts once. */
function bitsOf(text: string): number {
  const once = text.slice(0, (text + text).indexOf(text, 1))
  const counts = new Map<string, number>()
  for (const char of once) counts.set(char, (counts.get(char) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= count * Math.log2(count / once.length)
  return bits
}
