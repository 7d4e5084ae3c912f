import type { Accept, AcceptOutcome, SendRequest } from './accept.ts'

export interface NoticeRequest extends Omit<SendRequest, 'kind' | 'ttlMs' | 'scene'> {
  /** Not sent after it; the policy file's default when absent. */
  ttlMs?: number | undefined
}

export type SendNotice = ReturnType<typeof createSendNotice>

/** Sends a notice: all it needs is in the request. */
export function createSendNotice(deps: { accept: Accept; ttlMs: number }) {
  /** Throws Unavailable when Redis or PostgreSQL is out of reach; nothing was taken then. */
  return function sendNotice(request: NoticeRequest): Promise<AcceptOutcome> {
    const { ttlMs = deps.ttlMs } = request
    return deps.accept(
      { ...request, kind: 'notice', ttlMs },
      async () => request.params,
      async () => {},
    )
  }
}
