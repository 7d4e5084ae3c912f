/** The forms of the calls in process: the bodies of HTTP, and what HTTP reads from headers. */
import { z } from 'zod'
import { appName } from '../base/names.ts'
import { words } from '../base/words.ts'
import { checkCaptchaBody, sendCaptchaBody, sendWorkflowBody } from './captcha-bodies.ts'
import { countNoticesBody, searchNoticesBody } from './notice-reads.ts'
import { sendNoticeBody } from './notices.ts'
import { id, plainText, scene } from './schemas.ts'

const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, words.en.fields.visibleAscii)
  .optional()

/** The caller's API key, for rules by `{keyId}`. */
const keyId = plainText(64).min(1).optional()

/** Calls in process never get a challenge. */
const ofCalls = { app: appName, keyId, idempotencyKey, policy: z.string().optional() }
export const captchaInput = sendCaptchaBody.omit({ challenge: true }).extend(ofCalls)
export const workflowInput = sendWorkflowBody.omit({ challenge: true }).extend(ofCalls)
export const nextInput = z.strictObject({ app: appName, id, keyId, idempotencyKey })
export const checkInput = checkCaptchaBody
  .omit({ challenge: true })
  .extend({ app: appName, keyId, anyForm: z.boolean().optional() })
/** Without a recipient, the id names the code. A scene excludes ids of other scenes. */
export const checkByIdInput = checkInput
  .omit({ channel: true, to: true })
  .extend({ id, scene: scene.optional() })
export const noticeInput = sendNoticeBody.extend({ app: appName, keyId, idempotencyKey })
export const findInput = z.strictObject({ app: appName, id })
export const searchInput = searchNoticesBody.extend({ app: appName })
export const countInput = countNoticesBody.extend({ app: appName })
export const cancelInput = findInput.extend({ isPassed: z.boolean().default(false) })
