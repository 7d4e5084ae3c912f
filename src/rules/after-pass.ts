/** The effects of a right code on the rules that its check has used. */
import type { Rule } from '../limiter/index.ts'

/**
 * Names of rules, in two lists. A right code is not a wrong guess, so its use is taken back from rules that count wrong
 * guesses.
 *
 * `givenBack`: rules that lose the use of this check. These are lock-outs, rules in mode challenge and rules with
 * `refund: passed`. A rule in mode challenge is a budget of guesses; an owner who signs in often must not use it up.
 * Other rules count right codes like any use.
 *
 * `cleared`: rules that forget earlier wrong guesses too. These are lock-outs with the recipient in their key. Other
 * rules are not cleared. Otherwise an attacker could clear guesses at other numbers by signing in with an own number.
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
