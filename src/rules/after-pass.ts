/** What a right code changes in the rules that its check was asked. */
import type { Rule } from '../limiter/index.ts'

/**
 * Names of rules. A right code is no guess: `givenBack` lose the use that its check took. These are lock-outs, rules that
 * ask for a challenge (budgets of guesses; an owner who signs in often must not use them up), and rules with
 * `refund: passed`. Other rules count right codes like any use.
 *
 * `cleared` forget earlier wrong guesses too. These are lock-outs about the recipient alone: an attacker can pass with
 * a number of their own, and must win back no guess at the numbers of others. A budget that each sign-in filled up
 * again would be none.
 */
export function afterPass(rules: readonly Rule[]): { cleared: string[]; givenBack: string[] } {
  const isCleared = ({ kind, fields }: Rule) => kind === 'lockout' && fields.includes('to')
  const isUncounted = ({ kind, mode, refund }: Rule) =>
    kind === 'lockout' || mode === 'challenge' || refund === 'passed'
  const namesOf = (wanted: (rule: Rule) => boolean) => rules.filter(wanted).map(({ name }) => name)
  return {
    cleared: namesOf(isCleared),
    givenBack: namesOf((rule) => isUncounted(rule) && !isCleared(rule)),
  }
}
