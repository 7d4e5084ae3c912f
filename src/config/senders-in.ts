import { isByCountry, textFor } from '../base/by-country.ts'
import type { PolicyFile } from './policy-schema.ts'

/** The senders of a provider's SMS in the countries of a route. */
export interface SendersIn {
  /** Countries that the provider does not serve are left out. `sender` is undefined if the settings have none. */
  readonly senders: readonly { readonly country: string; readonly sender: string | undefined }[]
  /** True if the settings have a sender. */
  readonly isSet: boolean
  /** True if SMS may go to countries that neither the route nor the setting names. */
  readonly isOpen: boolean
}

/** Undefined if the sender has a form of its kind alone, as kinds of plugins may have. */
export function sendersIn(
  { from, senderId }: Readonly<Record<string, unknown>>,
  countries: readonly string[] | undefined,
): SendersIn | undefined {
  const given = from ?? senderId
  if (given === undefined) {
    const senders = (countries ?? []).map((country) => ({ country, sender: undefined }))
    return { senders, isSet: false, isOpen: !countries }
  }
  if (!isByCountry(given)) return undefined
  const named =
    typeof given === 'string' ? [] : Object.keys(given).filter((key) => key !== 'default')
  const senders = (countries ?? named).flatMap((country) => {
    const sender = textFor(given, country)
    return sender === undefined ? [] : [{ country, sender }]
  })
  return { senders, isSet: true, isOpen: !countries && textFor(given, '') !== undefined }
}

/** The senders of all SMS of a file, by its routes. A sender with a form of its kind alone is undefined. */
export const sendersOfRoutes = ({ routes, providers }: Pick<PolicyFile, 'routes' | 'providers'>) =>
  routes.sms.flatMap(({ match, use }) =>
    use.flatMap(({ provider }) => {
      const { settings = {} } = providers[provider] ?? {}
      const { senders } = sendersIn(settings, match.country) ?? sendersIn({}, match.country) ?? {}
      return (senders ?? []).map(({ country, sender }) => {
        return { provider, sender, countries: [country] }
      })
    }),
  )
