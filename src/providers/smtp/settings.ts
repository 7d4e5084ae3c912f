import addressparser from 'nodemailer/lib/addressparser'
import { z } from 'zod'

/**
 * The policy-file entry of an SMTP provider, and what its two strings say. Errors name the fault and
 * never repeat the value: the URL carries a password.
 */
export interface SmtpServer {
  readonly host: string
  readonly port: number
  /** TLS from the first byte (`smtps:`). */
  readonly secure: boolean
  /** `auto` upgrades where the server offers STARTTLS, `required` sends nothing without, `off` never. */
  readonly tls: 'auto' | 'required' | 'off'
  readonly auth?: { readonly user: string; readonly pass: string }
}

const url = z.string().transform((text, context): SmtpServer => {
  const problem = (message: string) => {
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  }
  if (!URL.canParse(text)) return problem('not a URL such as smtp://user:password@host:587')
  const parsed = new URL(text)
  const { protocol, hostname, port, username, password, pathname, searchParams } = parsed
  if (protocol !== 'smtp:' && protocol !== 'smtps:')
    return problem('must begin smtp:// or smtps://')
  if (hostname === '') return problem('has no host')
  if (pathname !== '' && pathname !== '/') return problem('takes no path')
  const unknown = [...searchParams.keys()].find((key) => key !== 'tls')
  if (unknown !== undefined) return problem('takes no query but tls=required or tls=off')
  const tls = searchParams.get('tls') ?? 'auto'
  if (tls !== 'auto' && tls !== 'required' && tls !== 'off') {
    return problem('tls is one of auto, required, off')
  }
  const secure = protocol === 'smtps:'
  if (secure && tls === 'off') return problem('smtps:// and tls=off contradict each other')
  try {
    return {
      host: decodeURIComponent(hostname.replace(/^\[(.*)\]$/, '$1')),
      port: port === '' ? (secure ? 465 : 587) : Number(port),
      secure,
      tls,
      ...(username === ''
        ? {}
        : { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
    }
  } catch {
    return problem('has a % that encodes nothing')
  }
})

export interface Sender {
  readonly name: string
  readonly address: string
}

const from = z.string().transform((text, context): Sender => {
  const [sender, ...others] = addressparser(text)
  if (sender?.address && others.length === 0 && isAddrSpec(sender.address)) {
    return { name: sender.name, address: sender.address }
  }
  context.addIssue({
    code: 'custom',
    message: 'not one address such as "Acme <no-reply@acme.test>"',
  })
  return z.NEVER
})

export const smtpSettings = z.strictObject({
  url,
  from,
  /** The name by which this machine greets the server. */
  ehlo: z
    .string()
    .regex(
      /^([a-z0-9-]{1,63}\.)+[a-z0-9-]{2,63}$/i,
      'not the full name of a host, e.g. mail.acme.test',
    )
    .optional(),
  /** Connections kept open at most, per process. */
  connections: z.int().min(1).max(100).default(5),
})

export type SmtpSettings = z.infer<typeof smtpSettings>

/**
 * One address and nothing else: no list, group, display name, comment, quoted part or address
 * literal. nodemailer reads a string as a *list*, so this is what keeps one recipient from being many.
 */
export function isAddrSpec(text: string): boolean {
  return (
    text.length <= 254 &&
    /^[^\s"(),:;<>@[\\\]\p{Cc}]{1,64}@[^\s"(),:;<>@[\\\]\p{Cc}]{1,253}$/u.test(text)
  )
}
