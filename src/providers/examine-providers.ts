import { orLate } from '../base/deadline.ts'
import { about, type Finding } from '../base/finding.ts'
import type { ProviderSetUp } from './kinds.ts'
import { isLoopback, type SmtpSettings } from './smtp/settings.ts'

/** A provider kind of a plugin may overrun its time limit. */
const overrunMs = 1_000

/** Checks the credentials of each provider that can check them without sending. */
export function examineProviders(
  providers: ReadonlyMap<string, ProviderSetUp>,
  timeoutMs: number,
): Promise<Finding[]> {
  return Promise.all(
    [...providers].map(async ([name, { kind, settings }]) => {
      const { ok, warning, error } = about(`provider ${name}`)
      if (kind.kind === 'sandbox') return ok('sandbox, needs no credentials')
      if (!kind.probe)
        return ok(`${kind.kind} can't check credentials without sending; send a code to yourself`)
      const late = () => `no result within ${timeoutMs / 1_000} s`
      const probing = (async () => kind.probe?.(settings, timeoutMs))()
      const problem = await orLate(probing, timeoutMs + overrunMs, late).catch(
        (thrown: unknown) => `the provider kind failed: ${(thrown as Error).message}`,
      )
      if (problem !== undefined) {
        return error(
          problem,
          'check its settings in the policy file, and whether this machine reaches it',
        )
      }
      if (kind.kind === 'smtp' && isPasswordOpen(settings as SmtpSettings)) {
        return warning(
          'the password may go out without TLS: an attacker on the way can remove STARTTLS',
          'remove tls=auto or tls=off from url, or use smtps://',
        )
      }
      const hasNoLogin = kind.kind === 'smtp' && !(settings as SmtpSettings).url.auth
      return ok(
        `${kind.kind} ${hasNoLogin ? 'answers; no login is set' : 'answers and accepts the credentials'}`,
      )
    }),
  )
}

function isPasswordOpen({ url: { auth, secure, tls, host } }: SmtpSettings): boolean {
  return !!auth && !secure && tls !== 'required' && !isLoopback(host)
}
