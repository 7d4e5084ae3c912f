/** The services of the policy file by their SIDs. */
export type Services = Readonly<Record<string, { readonly app: string; readonly scene: string }>>

/** A request whose key is valid. */
export interface Asked {
  account: { app: string; keyId: string; sid: string | null }
  params: Readonly<Record<string, string>>
  query: Readonly<Record<string, unknown>>
  /** The fields of the body. A name that occurs twice has a list of values. */
  form: Readonly<Record<string, unknown>>
  /** The address of the program that asks. */
  ip: string | undefined
  /** The address of this path as a client sees it. */
  urlOf: (path: string) => string
}
