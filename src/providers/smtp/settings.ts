import { domainToASCII } from 'node:url'
import { z } from 'zod'
import { dkimSettingsIn } from './dkim.ts'

/**
 * The server of an SMTP provider. Errors name the fault but never repeat the value, because the URL contains a password.
 * `secure`: TLS from the first byte. `tls`: `auto` uses STARTTLS if the server offers it, `required` sends nothing
 * without it, `off` never uses it. With `auto`, an attacker on the way can remove the offer and read the password. So a
 * login needs TLS by default, except on this machine.
 */
const url = z.string().transform((text, context) => {
  const problem = (message: string) => {
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  }
  if (!URL.canParse(text)) return problem('must be a URL such as smtp://user:password@host:587')
  const parsed = new URL(text)
  const { protocol, hostname, port, username, password, pathname, searchParams } = parsed
  if (protocol !== 'smtp:' && protocol !== 'smtps:')
    return problem('must begin with smtp:// or smtps://')
  if (hostname === '') return problem('has no host')
  if (pathname !== '' && pathname !== '/') return problem('must not have a path')
  const unknown = [...searchParams.keys()].find((key) => key !== 'tls')
  if (unknown !== undefined)
    return problem('allows no query except tls=required, tls=auto or tls=off')
  const needsTls = username !== '' && !isLoopback(hostname)
  const tls = searchParams.get('tls') ?? (needsTls ? 'required' : 'auto')
  if (tls !== 'auto' && tls !== 'required' && tls !== 'off') {
    return problem('tls must be one of auto, required, off')
  }
  const secure = protocol === 'smtps:'
  if (secure && tls === 'off') return problem('smtps:// and tls=off contradict each other')
  try {
    return {
      host: decodeURIComponent(hostname.replace(/^\[(.*)\]$/, '$1')),
      port: port === '' ? (secure ? 465 : 587) : Number(port),
      secure,
      tls,
      auth:
        username === ''
          ? undefined
          : { user: decodeURIComponent(username), pass: decodeURIComponent(password) },
    }
  } catch {
    return problem('has a % without two hexadecimal digits')
  }
})

/** True for a name or address of this machine. */
export const isLoopback = (hostname: string): boolean =>
  /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(hostname)

export interface Sender {
  readonly name: string
  readonly address: string
}

/**
 * One address, with a name or without. The name may have any characters but < and >, with or without quotes around it, and
 * is shown as it is written. The domain becomes ASCII, because it is also a part of Message-ID.
 */
export const sender = z.string().transform((text, context): Sender => {
  const whole = text.trim()
  const open = whole.lastIndexOf('<')
  const named = whole.slice(0, Math.max(open, 0)).trim()
  const given = open < 0 ? whole : whole.endsWith('>') ? whole.slice(open + 1, -1).trim() : ''
  const at = given.lastIndexOf('@') + 1
  const address = given.slice(0, at) + domainToASCII(given.slice(at))
  if (isAddrSpec(given) && isAddrSpec(address) && !/[<>]/.test(named)) {
    const quoted = /^"(.*)"$/s.exec(named)?.[1]
    return { name: quoted?.replace(/\\(.)/gs, '$1') ?? named, address }
  }
  context.addIssue({
    code: 'custom',
    message: 'not one address such as "Acme <no-reply@acme.test>"',
  })
  return z.NEVER
})

export const smtpSettingsIn = (folder: string) =>
  z.strictObject({
    url,
    from: sender,
    /** The host name in the greeting to the server. */
    ehlo: z
      .string()
      .regex(
        /^([a-z0-9-]{1,63}\.)+[a-z0-9-]{2,63}$/i,
        'must be the full name of a host, e.g. mail.acme.test',
      )
      .optional(),
    /** Largest number of open connections per process. */
    connections: z.int().min(1).max(100).default(5),
    dkim: dkimSettingsIn(folder).optional(),
  })

export type SmtpSettings = z.infer<ReturnType<typeof smtpSettingsIn>>

/**
 * Exactly one address: no list, group, display name, comment, quoted part or address literal. nodemailer reads a string as
 * a *list*, so this check keeps one recipient from becoming many.
 */
export function isAddrSpec(text: string): boolean {
  return (
    text.length <= 254 &&
    /^[^\s"(),:;<>@[\\\]\p{Cc}]{1,64}@[^\s"(),:;<>@[\\\]\p{Cc}]{1,253}$/u.test(text)
  )
}
