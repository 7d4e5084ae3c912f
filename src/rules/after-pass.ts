/** The effects of a right code on the rules that its check has used. */
import type { Rule } from '../limiter/index.ts'

/**
 * Returns two lists of names of rules. Every check is counted before the code is compared. After a right code, rules
 * that count wrong guesses take that use back.
 *
 * `givenBack`: rules that lose the use of this check. These are lock-outs, rules in mode challenge and rules with
 * `refund: passed`. A rule in mode challenge is a budget of guesses; an owner who signs in often must not use it up.
 * Other rules count right codes like any use.
 *
 * `cleared`: rules that forget earlier wrong guesses too. These are lock-outs with the recipient in their key. Other
 * rules are not cleared. Otherwise an attacker could clear guesses at other numbers by a sign-in with the right code of
 * another number.
 */
export function afterPass(rules: readonly Rule[]): { cleared: string[]; givenBack: string[] } {
  const isCleared = ({ kind, fields }: Rule) => kind === 'lockout' && fields.includes('to')
  const isUncounted = ({ kind, mode, refund }: Rule) =>
    kind === 'lockout' || mode === 'challenge' || refund === 'passed'
  const namesOf = (matches: (rule: Rule) => boolean) =>
    rules.filter(matches).map(({ name }) => name)
  return {
    cleared: namesOf(isCleared),
    givenBack: namesOf((rule) => isUncounted(rule) && !isCleared(rule)),
  }
}
