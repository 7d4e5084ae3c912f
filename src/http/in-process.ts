/**
 * The HTTP calls as functions, for host apps and plugins: the same checks, limits, rows and records, without a key.
 * Every expected result is a value; only an unexpected error is thrown.
 */
import type { Request } from 'express'
import type { z } from 'zod'
import { isObject } from '../base/json.ts'
import { Problem } from '../base/problems.ts'
import { inSpan } from '../base/traces.ts'
import { Unavailable } from '../base/unavailable.ts'
import type { CancelCaptcha, CancelOutcome } from '../captcha/cancel.ts'
import type { CheckCaptcha, CheckOutcome } from '../captcha/check.ts'
import type { SendCaptcha } from '../captcha/send.ts'
import type { WayOutcome } from '../captcha/verification-views.ts'
import type { Workflows } from '../captcha/workflows.ts'
import type { SendOutcome } from '../notice/message.ts'
import type { SendNotice } from '../notice/send.ts'
import type { Caller } from '../rules/caller.ts'
import { checked, readBytes } from './body.ts'
import {
  cancelInput,
  captchaInput,
  checkByIdInput,
  checkInput,
  countInput,
  findInput,
  nextInput,
  noticeInput,
  searchInput,
  workflowInput,
} from './call-inputs.ts'
import { type CallOutcome, factsOf, outcomeIn, shown } from './call-outcome.ts'
import type { NoticePage, NoticeReads, NoticeView } from './notice-reads.ts'
import { type PluginCall, pluginCall } from './plugin-router.ts'
import type { Key } from './route.ts'
import type { UnderWay } from './under-way.ts'

type Wrong = Extract<SendOutcome, { outcome: 'invalid_request' | 'invalid_recipient' }>
type Authenticated =
  | { outcome: 'authenticated'; app: string; keyId: string; kind: Key['kind'] }
  | { outcome: 'unauthorized' }
  | { outcome: 'unavailable' }
type Found<Members> = ({ outcome: 'found' } & Members) | Wrong

/**
 * The fields of the HTTP body, and the `app`. `ip` is the person's address. Calls without it share one count in limits
 * by address. `keyId` is the caller's key, for rules by `{keyId}`.
 */
export interface PosternCalls {
  /** `policy`: a policy that includes `captcha` and decides in its place. */
  sendCaptcha(asked: z.input<typeof captchaInput>): Promise<CallOutcome<SendOutcome>>
  /** One verification, several ways to the person. */
  sendCaptcha(asked: z.input<typeof workflowInput>): Promise<CallOutcome<WayOutcome>>
  /** Begins the next way of a verification. */
  nextWay(asked: z.input<typeof nextInput>): Promise<CallOutcome<WayOutcome>>
  /**
   * The code of a recipient, or of an id alone. `anyForm`: a code of the wrong form is a wrong code and counts. Otherwise it
   * is `invalid_request`.
   */
  checkCaptcha(
    asked: z.input<typeof checkInput> | z.input<typeof checkByIdInput>,
  ): Promise<CallOutcome<CheckOutcome>>
  /**
   * Ends a code. The code passes no more, and a message that still waits is not sent. `isPassed`: the app has verified
   * the person in another way, so the code counts as passed.
   */
  cancelCaptcha(asked: z.input<typeof cancelInput>): Promise<CallOutcome<CancelOutcome | Wrong>>
  sendNotice(asked: z.input<typeof noticeInput>): Promise<CallOutcome<SendOutcome>>
  /** The notice, if this app sent it. */
  findNotice(
    asked: z.input<typeof findInput>,
  ): Promise<CallOutcome<Found<{ notice: NoticeView }> | { outcome: 'not_found' }>>
  /** A page of the app's notices, newest first. */
  searchNotices(asked: z.input<typeof searchInput>): Promise<CallOutcome<Found<NoticePage>>>
  /** `passed`: notices whose code passed. Reads every row that matches, so give a time for a large table. */
  countNotices(
    asked: z.input<typeof countInput>,
  ): Promise<CallOutcome<Found<{ total: number; passed: number }>>>
  /** PostgreSQL's time, for comparisons with the times of notices. */
  nowMs(): number
  /** The app of an API key, for routers that check keys as the HTTP calls do. */
  authenticate(key: string): Promise<Authenticated>
  /**
   * The bytes of a request's body, for routers that check a signature over them. All such bodies share a limited room.
   * Rejects with the problem to answer: 413 above `maxBytes`, 400 if the body ends early, 503 without room. A request of a
   * stranger gives way to requests with a key, unless `isGenuine` returns true for its bytes.
   */
  readBody(
    request: Request,
    maxBytes: number,
    isGenuine?: (bytes: Buffer) => boolean,
  ): Promise<Buffer>
}

export function createCalls(deps: {
  sendCaptcha: SendCaptcha
  checkCaptcha: CheckCaptcha
  sendNotice: SendNotice
  workflows: Pick<Workflows, 'sendWorkflow' | 'next'>
  cancelCaptcha: CancelCaptcha
  reads: NoticeReads
  authenticate: (token: string) => Promise<Key | null>
  nowMs: () => number
  /** True if a plugin sends codes that its clients have made. */
  sendsOwnCodes: boolean
  underWay: UnderWay
}): PosternCalls {
  const { workflows, reads, underWay, sendsOwnCodes } = deps

  /** Runs a call. Expected errors become outcomes. */
  async function outcomeOf<Made extends { outcome: string }>(
    call: PluginCall,
    work: () => Promise<Made>,
  ) {
    if (!underWay.begin()) return unavailable()
    try {
      return shown(await work())
    } catch (error) {
      if (error instanceof Problem) return outcomeIn(error)
      if (!(error instanceof Unavailable)) throw error
      // If the plugin answers with 5xx for it, the answer is counted and logged by this cause.
      call.failure = error
      return unavailable()
    } finally {
      underWay.end()
    }
  }

  const giveWay = ({ caller, waitedMs }: PluginCall) =>
    underWay.giveWay({ app: '', caller, waitedMs })

  /** A call with any fields, because callers in JavaScript have no types. */
  const inProcess =
    <
      Input extends { app: string; keyId?: string | undefined },
      Outcome extends { outcome: string },
    >(
      schema: z.ZodType<Input>,
      work: (asked: Omit<Input, 'app' | 'keyId'>, caller: Caller) => Promise<Outcome>,
      kind: 'work' | 'reads' = 'work',
    ) =>
    async (given: unknown): Promise<CallOutcome<Outcome>> => {
      const call = pluginCall()
      const made = await outcomeOf(call, async () => {
        const { app, keyId, ...asked } = checked(schema, given, '') as Input
        call.admit({ app, keyId }, false)
        const owner = { app, keyId: keyId ?? inProcessKey, isInProcess: true }
        const caller = { ...owner, ip: '', isPage: false, origins: [], sendsOwnCodes }
        const { ip = '' } = asked as { ip?: string }
        const sharer = { app, caller: ip, waitedMs: call.waitedMs }
        return inSpan(call.span, () => underWay.inTurn(kind, sharer, () => work(asked, caller)))
      })
      Object.assign(call.facts, factsOf(made))
      return made
    }

  const checkByRecipient = inProcess(checkInput, deps.checkCaptcha)
  const checkById = inProcess(checkByIdInput, deps.checkCaptcha)
  const sendPlain = inProcess(captchaInput, deps.sendCaptcha)
  const sendWorkflow = inProcess(workflowInput, (asked, caller) =>
    workflows.sendWorkflow(asked, caller),
  )

  // Plugins share this object.
  return Object.freeze<PosternCalls>({
    sendCaptcha: (asked: unknown) =>
      (isObject(asked) && 'workflow' in asked ? sendWorkflow(asked) : sendPlain(asked)) as never,
    nextWay: inProcess(nextInput, (asked, caller) => workflows.next(asked, caller)),
    checkCaptcha: (asked) =>
      isObject(asked) && 'id' in asked && !('to' in asked)
        ? checkById(asked)
        : checkByRecipient(asked),
    cancelCaptcha: inProcess(cancelInput, ({ id, isPassed }, { app }) =>
      deps.cancelCaptcha(app, id, isPassed),
    ),
    sendNotice: inProcess(noticeInput, deps.sendNotice),
    findNotice: inProcess(
      findInput,
      async ({ id }, { app }) => {
        const notice = await reads.findNotice(app, id)
        return notice ? found({ notice }) : ({ outcome: 'not_found' } as const)
      },
      'reads',
    ),
    searchNotices: inProcess(
      searchInput,
      async (asked, { app }) => found(await reads.searchNotices(app, asked)),
      'reads',
    ),
    countNotices: inProcess(
      countInput,
      async (asked, { app }) => found(await reads.countNotices(app, asked)),
      'reads',
    ),
    nowMs: deps.nowMs,
    async authenticate(token) {
      const call = pluginCall()
      const made = (await outcomeOf(call, async () => {
        const key = isKeyText(token) ? await deps.authenticate(token) : null
        if (!key) return { outcome: 'unauthorized' }
        return { outcome: 'authenticated', app: key.app, keyId: key.id, kind: key.kind }
      })) as Authenticated
      // Any visitor of a page has its key, and most plugins refuse it. Such a request is admitted by its first call.
      if (made.outcome === 'authenticated' && made.kind === 'secret') call.admit(made, true)
      else await giveWay(call)
      return made
    },
    async readBody(request, maxBytes, isGenuine = () => false) {
      const share = underWay.bodies.open.open()
      const { res: response } = request
      response?.once('close', share.close)
      let bytes: Buffer
      try {
        bytes = await readBytes(request, maxBytes, share)
      } finally {
        // A plugin may answer before it has the body.
        if (!response || response.closed) share.close()
      }
      const call = pluginCall()
      if (call.facts.app === undefined && !isGenuine(bytes)) await giveWay(call)
      return bytes
    },
  })
}

const unavailable = () => ({ outcome: 'unavailable' }) as const
const found = <Members>(members: Members) => ({ outcome: 'found', ...members }) as const

/** True for a text that could be the key of an HTTP call. */
const isKeyText = (text: unknown): text is string =>
  typeof text === 'string' && /^[\x21-\x7e]{1,200}$/.test(text)

/** Rules may count by `{keyId}`. No key has this id. */
const inProcessKey = 'in-process'
