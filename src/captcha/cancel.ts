/**
 * Ends a code before its time. The row is written first, so a repeat of a call that died completes it. A message that
 * still waits is not sent, because a worker checks its code right before the call of the provider.
 */
import { isId } from '../base/ids.ts'
import type { NoticeStore } from '../notice/store.ts'
import { addressKindOf, channelsOfKind } from '../recipient/channels.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import type { GuessLimits } from '../rules/guess-limits.ts'
import type { Refused } from '../rules/refused.ts'
import type { CaptchaEvents, EndCode } from './captcha-events.ts'
import type { EndedCode } from './code-answers.ts'
import { isShared, ownerOf } from './code-names.ts'
import type { CodeOwner, CodeStore } from './code-store.ts'
import { homeOf } from './verification.ts'
import type { Workflows } from './workflows.ts'

export type CancelOutcome =
  | { outcome: 'canceled' }
  | { outcome: 'not_found' }
  | Extract<Refused, { outcome: 'code_gone' }>

export type FindCaptcha = ReturnType<typeof createFindCaptcha>
export type CancelCaptcha = ReturnType<typeof createCancelCaptcha>

/** Finds the owner of a code by the id of its notice, or of its verification. Null for an unknown id, or once the recipient is erased. */
export function createFindCaptcha(deps: {
  store: Pick<NoticeStore, 'find'>
  workflows: Pick<Workflows, 'find'>
  codes: Pick<CodeStore, 'look' | 'scenesOf'>
  testRecipients: Pick<TestRecipients, 'list'>
}) {
  /** A test recipient has no notice, so its codes are searched. */
  async function findOfTest(app: string, id: string) {
    const { testRecipients, codes } = deps
    const byEachChannel = testRecipients
      .list()
      .flatMap(({ channel, to }) =>
        channelsOfKind(addressKindOf(channel)).map((each) => ({ channel: each, to })),
      )
    const searched = byEachChannel.map(async (recipient) => {
      for (const scene of await codes.scenesOf({ app, ...recipient })) {
        const owner = { app, scene, ...recipient }
        const found = await codes.look(owner, id)
        if (found.result === 'live' || found.reason !== 'expired')
          return { ...owner, codeEnd: null }
      }
      return null
    })
    return (await Promise.all(searched)).find((found) => found) ?? null
  }

  return async function findCaptcha(
    app: string,
    id: string,
  ): Promise<(CodeOwner & { codeEnd: string | null }) | null> {
    if (!isId(id)) return null
    const [row, verification] = await Promise.all([
      deps.store.find(app, id),
      deps.workflows.find(app, id),
    ])
    if (verification) return { ...homeOf(verification), codeEnd: verification.ended }
    if (!row) return findOfTest(app, id)
    const { recipient, scene, codeEnd } = row
    if (row.kind !== 'captcha' || recipient === null) return null
    const channel = row.channel as CodeOwner['channel']
    return { ...ownerOf({ app, scene, channel, recipient }), codeEnd }
  }
}

export function createCancelCaptcha(deps: {
  findCaptcha: FindCaptcha
  codes: Pick<CodeStore, 'settle' | 'look' | 'drop'>
  endCode: EndCode
  limits: Pick<GuessLimits, 'refund'>
  events: Pick<CaptchaEvents, 'passed'>
  testRecipients: Pick<TestRecipients, 'isTestRecipient'>
}) {
  const { findCaptcha, codes, endCode, limits, events, testRecipients } = deps

  /**
   * `isPassed`: the app has verified the person in another way. The code then counts as passed, once. Throws Unavailable.
   */
  return async function cancelCaptcha(
    app: string,
    id: string,
    isPassed: boolean,
  ): Promise<CancelOutcome> {
    const captcha = await findCaptcha(app, id)
    if (!captcha) return { outcome: 'not_found' }
    const end = isPassed ? 'passed' : 'canceled'
    // The row exists, so its code replaces the earlier ones, as it would before its message is sent.
    if (!isShared(captcha)) await codes.settle(captcha, id)
    const live = await codes.look(captcha, id)
    if (live.result === 'gone' && captcha.codeEnd !== end) {
      return { outcome: 'code_gone', reason: live.reason }
    }
    await endCode(captcha, isShared(captcha) ? { codeId: id } : { noticeId: id }, end)
    const finish = (ended: EndedCode) => {
      if (!isPassed || testRecipients.isTestRecipient(captcha.to)) return
      limits.refund(ended)
      events.passed(captcha, id)
    }
    const ended = await codes.drop(captcha, id, finish)
    if (ended) finish(ended)
    return { outcome: 'canceled' }
  }
}
