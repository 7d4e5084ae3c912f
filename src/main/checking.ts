/** Builds the check of typed codes, and the passes of right codes. */
import { createCancelCaptcha, createFindCaptcha } from '../captcha/cancel.ts'
import { createCaptchaEvents } from '../captcha/captcha-events.ts'
import { createCheckCaptcha } from '../captcha/check.ts'
import { createPasses } from '../captcha/passes.ts'
import type { Requests } from './requests.ts'
import type { Shared } from './shared.ts'

export async function composeChecking(shared: Shared, requests: Requests) {
  const { closers, metrics, secrets } = shared
  const { database, redis, keyPrefix } = shared.servers
  const { events, wantedEvents, codes, notices } = shared.stores
  const { normaliseRecipient, testRecipients, challenges, guessLimits, recorder } = requests
  const { nowMs } = database
  const passes = await createPasses({ redis, keyPrefix, secrets, nowMs })
  closers.onClose(() => passes.close())
  const captchaEvents = createCaptchaEvents({
    ...{ redis, secrets, keyPrefix },
    types: wantedEvents,
    write: events.add,
    endCode: notices.endCode,
  })
  closers.onClose(() => captchaEvents.close())
  const checkCaptcha = createCheckCaptcha({
    ...{ normaliseRecipient, testRecipients, challenges, codes },
    limits: guessLimits,
    code: shared.config.file.code,
    passes,
    metrics,
    nowMs,
    events: captchaEvents,
    onChecked: recorder.checked,
  })
  const findCaptcha = createFindCaptcha({ ...requests, store: notices, codes })
  const cancelCaptcha = createCancelCaptcha({ findCaptcha, codes, endCode: notices.endCode })
  return { checkCaptcha, findCaptcha, cancelCaptcha, passes }
}
