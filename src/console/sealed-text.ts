/** Sealed texts in addresses of pages. Only processes with the same `SECRET` can read or make one. */
import type { Secrets } from '../crypto/secrets.ts'

export type SealedTexts = ReturnType<typeof createSealedTexts>

/** Enough for a mail address of 320 characters and the other members. */
const maxLength = 1_000

/** A text that was sealed for one `context` does not open for another. */
export function createSealedTexts(secrets: Pick<Secrets, 'seal' | 'unseal'>, context: string) {
  return {
    seal: (text: string): string => secrets.seal(text, context).toString('base64url'),

    /** Undefined if the text is forged, or if its secret was removed. */
    open(sealed = ''): string | undefined {
      try {
        return secrets.unseal(Buffer.from(sealed.slice(0, maxLength), 'base64url'), context)
      } catch {
        return undefined
      }
    },
  }
}
