/**
 * The way of every send to its 202: first the limits, because a refusal must cost nothing; then what
 * has to be there before the message (a code); last the row, whose commit is the promise. When
 * anything after the limits can't be done, the quota is given back.
 */
import { newId } from '../base/ids.ts'
import type { Admission, AdmissionRefusal, Origin } from './admission.ts'
import type {
  CreatedNotice,
  CreateNotice,
  FindNotice,
  NoticeDraft,
  Params,
  PreparedNotice,
  ReservedNotice,
} from './create.ts'

export interface SendRequest extends NoticeDraft {
  reserved?: ReservedNotice | undefined
  params: Params
  origin: Origin
}

export type AcceptOutcome =
  | { accepted: true; notice: CreatedNotice; resendAt: Date }
  | { accepted: false; policy: string; refusal: AdmissionRefusal }

export type Accept = ReturnType<typeof createAccept>

export function createAccept(deps: {
  admission: Admission
  createNotice: CreateNotice
  findNotice: FindNotice
  now: () => number
}) {
  const { admission, createNotice, findNotice, now } = deps

  /**
   * `ready` makes what the message needs and returns its variables; `undo` takes that back, best
   * effort. Throws Unavailable when Redis or PostgreSQL is out of reach; nothing was taken then.
   */
  return async function accept(
    request: SendRequest,
    ready: (notice: PreparedNotice) => Promise<Params>,
    undo: (notice: PreparedNotice) => Promise<void>,
  ): Promise<AcceptOutcome> {
    const { params, origin, reserved, ...draft } = request
    const policy = draft.kind
    const fields = admission.fieldsOf(draft, params, origin)
    const repeat = reserved ? undefined : admission.recall(policy, fields)
    if (repeat) return { accepted: false, policy, refusal: repeat }
    const notice = { ...draft, id: reserved?.id ?? newId(now()) }

    // The promise was made before, only its answer was lost: a second one would make a second message.
    const earlier = reserved?.isTakenOver ? await findNotice(notice.app, notice.id) : null
    if (earlier) {
      const { createdAt, expiresAt } = earlier
      const resendAt = new Date(now() + (await admission.nextInMs(policy, fields)))
      return { accepted: true, notice: { ...notice, createdAt, expiresAt }, resendAt }
    }

    const verdict = await admission.admit(policy, fields, notice.id)
    if (!verdict.admitted) return { accepted: false, policy, refusal: verdict }
    try {
      const created = await createNotice(notice, await ready(notice))
      const resendAt = new Date(created.createdAt.getTime() + verdict.nextInMs)
      return { accepted: true, notice: created, resendAt }
    } catch (error) {
      // What is out of reach now ends by its own time to live.
      await Promise.allSettled([undo(notice), admission.giveBack(policy, fields, notice.id)])
      throw error
    }
  }
}
