/** Texts that travel in addresses of pages: any process with our secret opens them, and nobody else reads or makes one. */
import type { Secrets } from '../crypto/secrets.ts'

export type SealedTexts = ReturnType<typeof createSealedTexts>

/** A mail address of 320 characters with all that stands beside it makes less. */
const maxLength = 1_000

/** What was sealed for one `context` opens for no other. */
export function createSealedTexts(secrets: Pick<Secrets, 'seal' | 'unseal'>, context: string) {
  return {
    seal: (text: string): string => secrets.seal(text, context).toString('base64url'),

    /** Undefined when we did not make it, or its secret is gone. */
    open(sealed = ''): string | undefined {
      try {
        return secrets.unseal(Buffer.from(sealed.slice(0, maxLength), 'base64url'), context)
      } catch {
        return undefined
      }
    },
  }
}
