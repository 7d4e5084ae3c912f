/** The package `postern-sms-rules`: the wishes of carriers and laws of a country for an SMS, and a check of a message. */

export { checkSms, type Finding, type Sms } from './check.ts'
export {
  checkRoutes,
  type Registrations,
  type Route,
  type RouteFinding,
} from './check-routes.ts'
export { countries, rulesOf } from './data.ts'
export { type About, factWords, onlyRegistered, rejectingRules, senderWords } from './fact-words.ts'
export type { CountryRules, Fact, SenderKind } from './facts.ts'
export { paperwork } from './paperwork.ts'
export { withoutWebOtp } from './text-parts.ts'
