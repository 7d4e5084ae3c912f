/** The HTTP connectors of Logto, for SMS and mail: `Authorization: Bearer <secret>`, no signature. */
import { z } from 'zod'
import { isSameSecret } from '../../crypto/same-secret.ts'
import { findShortness, type HookHead, type HookKind } from './hook-kind.ts'

const body = z.object({
  to: z.string().min(1),
  /** The connector for mail sends the address of the person. */
  ip: z.string().nullish(),
  payload: z.object({ code: z.string().nullish(), locale: z.string().nullish() }),
})

export const logto: HookKind = {
  findMistake: findShortness,
  create(secret) {
    const isBearer = ({ headers: { authorization = '' } }: HookHead) =>
      isSameSecret(String(authorization).replace(/^bearer +/i, 'Bearer '), `Bearer ${secret}`)
    return {
      mayBeGenuine: isBearer,
      isGenuine: isBearer,
      read(given) {
        const parsed = body.safeParse(given)
        if (!parsed.success) return undefined
        const { to, ip, payload } = parsed.data
        const { code, locale } = payload
        const channel = to.includes('@') ? 'email' : 'sms'
        const more = { locale: locale ?? undefined, ip: ip ?? undefined }
        return { codes: code ? [{ channel, to, code, ...more }] : [] }
      },
    }
  },
}
