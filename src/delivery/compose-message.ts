/** Makes the message for a provider from a notice: unseals its variables and renders its template. */
import type { Log } from '../base/log.ts'
import type { OpenNotice } from '../notice/claim.ts'
import type { Templates } from '../notice/templates.ts'
import type { Message } from '../providers/provider.ts'
import { channelFacts } from '../recipient/channels.ts'
import { withoutWebOtp } from '../sms-rules/index.ts'

export function createComposeMessage(deps: {
  templates: Templates
  /** Decrypts the variables of a notice. Throws without the secret that sealed them. */
  unseal: (sealed: Uint8Array, noticeId: string) => string
  /** Countries whose SMS leave out the line of WebOTP. */
  withoutWebOtpIn?: readonly string[]
  log: Log
}) {
  const { templates, unseal, withoutWebOtpIn = [], log } = deps
  /** Templates that this worker can't render, and has logged. */
  const unrenderable = new Set<string>()

  /**
   * `endsAtMs`: the end of the notice by `performance.now()`. Null if this worker lacks the template, one of its
   * variables, or the secret that sealed them.
   */
  return function composeMessage(notice: OpenNotice, endsAtMs: number): Message | null {
    const form = `${notice.template}/${notice.channel}.${notice.locale}`
    try {
      const message = rendered(notice, endsAtMs)
      unrenderable.delete(form)
      return message
    } catch (error) {
      if (!unrenderable.has(form)) log.notRendered(notice.id, form, error)
      unrenderable.add(form)
      return null
    }
  }

  function rendered(notice: OpenNotice, endsAtMs: number): Message {
    const params: Record<string, unknown> = JSON.parse(unseal(notice.sealedParams, notice.id))
    const variables: Record<string, string> = {}
    for (const [name, value] of Object.entries(params)) variables[name] = String(value)
    const { channel, template, locale } = notice
    const { address, isSpoken } = channelFacts(channel)
    const shown = isSpoken ? withCodeApart(variables) : variables
    const place = address.placeOf(notice.recipient)
    const rendered = templates.render(template, channel, locale, shown, place.country)
    if (withoutWebOtpIn.includes(place.country)) rendered.text = withoutWebOtp(rendered.text)
    return {
      noticeId: notice.id,
      channel,
      to: notice.recipient,
      ...place,
      template,
      locale,
      variables,
      endsAtMs,
      ...rendered,
    }
  }
}

/** A voice would read `4711` as a number of thousands. */
const withCodeApart = (variables: Readonly<Record<string, string>>) =>
  variables.code === undefined ? variables : { ...variables, code: [...variables.code].join(', ') }
