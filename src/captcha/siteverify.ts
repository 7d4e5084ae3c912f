/**
 * Turnstile and hCaptcha: the page gets a token from the vendor, and the vendor checks it once. After an error
 * about the site's settings, or an unclear answer, the caller gets 503: there is no proof, but the visitor made no
 * mistake. The visitor's address is not sent to the vendor.
 */
import { hash } from 'node:crypto'
import { createHttpClient } from '../base/http-client.ts'
import { parseObject } from '../base/json.ts'
import { Unavailable } from '../base/unavailable.ts'
import type { ChallengeKind, ChallengeOwner, Reading } from './challenge-kind.ts'

export interface SiteverifySettings {
  kind: 'turnstile' | 'hcaptcha'
  siteKey: string
  secret: string
  /** Another endpoint, for tests and proxies. */
  url?: string | undefined
}

const endpoints = {
  turnstile: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
  hcaptcha: 'https://api.hcaptcha.com/siteverify',
}

/** Error codes of both vendors that are not about the token. */
const notAboutToken = [
  'missing-input-secret',
  'invalid-input-secret',
  'sitekey-secret-mismatch',
  'not-using-dummy-passcode',
  'bad-request',
  'internal-error',
]

/** Under load, hCaptcha returns this in place of a host. */
const hostNotProvided = 'not-provided'

/**
 * True if the token comes from a page that may use the key. One site key may be used on many sites, so a token solved
 * on another site would pass. The widget's `action` is chosen by the page, so it proves nothing.
 */
function isFromPage(
  kind: SiteverifySettings['kind'],
  hostname: unknown,
  origins: readonly string[],
) {
  if (origins.length === 0) return true
  if (kind === 'hcaptcha' && hostname === hostNotProvided) return true
  return origins.some((origin) => new URL(origin).hostname === hostname)
}

/** Short enough to leave time for the send. */
const timeoutMs = 1_200
/** Longer than the life of a token of either vendor. */
const aliveMs = 600_000
const never = new AbortController().signal

export function createSiteverify(settings: SiteverifySettings): ChallengeKind {
  const { kind, siteKey, secret, url = endpoints[kind] } = settings
  const http = createHttpClient(timeoutMs)
  const unavailable = (reason: string) =>
    new Unavailable('challenge', undefined, `${kind}: ${reason}`)

  return {
    offer: async () => ({ kind, siteKey }),

    read({ app, keyId }: ChallengeOwner, answer): Reading {
      if (!/^[\x21-\x7e]+$/.test(answer)) return { kind: 'malformed' }
      const id = hash('sha256', `${app} ${keyId} ${answer}`)
      return { kind: 'unproven', id, aliveMs }
    },

    async prove({ origins }, answer) {
      const form = new URLSearchParams({
        secret,
        response: answer,
        ...(kind === 'hcaptcha' ? { sitekey: siteKey } : {}),
      })
      const outcome = await http.call(
        {
          method: 'POST',
          url,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: form.toString(),
        },
        never,
      )
      if (outcome.kind !== 'answered') throw unavailable(outcome.reason)
      const { success, hostname, 'error-codes': codes = [] } = parseObject(outcome.body) ?? {}
      if (outcome.status >= 500 || typeof success !== 'boolean' || !Array.isArray(codes)) {
        throw unavailable(`its answer has status ${outcome.status} and no result`)
      }
      const failure = notAboutToken.find((code) => codes.includes(code))
      if (failure) throw unavailable(failure)
      return success && isFromPage(kind, hostname, origins)
    },

    close: http.close,
  }
}
