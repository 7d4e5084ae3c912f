/**
 * Whom a page is about. Recipients never travel in an address, where histories and proxies keep them, so the address
 * of a story holds one sealed: any process with our secret opens it, nobody else does, and colleagues can hand it on.
 *
 * Only colleagues: whoever opens a story can see the recipient in full. So it names the apps of the operator who typed the
 * recipient, or the app of the notice that led there, and opens to nobody who sees none of them.
 *
 * What was revealed travels the same way, and only for the operator who asked, for a few minutes.
 */
import { z } from 'zod'
import { channels } from '../base/channel.ts'
import { parseJson } from '../base/json.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Operator } from './page.ts'
import { createSealedTexts } from './sealed-text.ts'

const lookedAt = z.object({
  channel: z.enum(channels),
  to: z.string(),
  /** An address the person asks from, where support knows one. */
  ip: z.string().optional(),
  /** Whose operators may open it; absent: only those of every app. */
  apps: z.array(z.string()).readonly().optional(),
  revealed: z.object({ keyId: z.string(), untilMs: z.number() }).optional(),
})

export type LookedAt = z.infer<typeof lookedAt>
export type Sealing = ReturnType<typeof createSealing>

export const revealedForMs = 5 * 60_000

export function createSealing(secrets: Pick<Secrets, 'seal' | 'unseal'>) {
  const texts = createSealedTexts(secrets, 'console recipient')
  return {
    seal: (one: LookedAt): string => texts.seal(JSON.stringify(one)),

    /** Undefined when we did not make it, its secret is gone, or it is not for this operator. */
    open(sealed: string, { apps }: Pick<Operator, 'apps'>): LookedAt | undefined {
      const one = lookedAt.safeParse(parseJson(texts.open(sealed) ?? '')).data
      const isTheirs = apps === undefined || one?.apps?.some((app) => apps.includes(app))
      return isTheirs ? one : undefined
    },
  }
}
