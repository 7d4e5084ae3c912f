/** The state that the demo server (src/dev) sends to its page. */
import type { Channel } from '../client.ts'

export interface Message {
  id: string
  noticeId: string
  channel: Channel
  to: string
  subject?: string
  text: string
  provider: string
  sentAt: string
}

export interface Notice {
  id: string
  channel: Channel
  to: string | null
  state: 'pending' | 'sending' | 'sent' | 'delivered' | 'failed' | 'expired'
  provider?: string
  attempts: { provider: string | null; at: string; outcome: string; durationMs: number }[]
  createdAt: string
  sentAt?: string
  finishedAt?: string
}

export interface Lane {
  /** The policy that declares the rule. */
  policy: string
  rule: string
  mode: 'enforce' | 'observe' | 'challenge'
  kind: 'sliding' | 'fixed' | 'bucket' | 'calendar' | 'lockout'
  window: string
  /** 0 for a calendar rule. For a bucket, the time until an empty one is full. */
  windowMs: number
  limit: number
  used: number
  resetsInMs: number
  lockedForMs?: number
  /** Beginning of each use that this process saw, newest first. */
  takenAtMs: number[]
}

export interface Decided {
  asked: 'send' | 'check'
  atMs: number
  refusal?: { policy: string; rule: string; window: string; retryAfterMs: number }
}

export interface DemoState {
  /** All times here are by the clock of the server. */
  nowMs: number
  worker: { kind: 'starting' | 'ready'; pid: number } | { kind: 'down'; restartsInMs: number }
  /** Null if the policy file names other providers than the demo's. */
  provider: { name: string; reserve: string; isOff: boolean } | null
  /** Newest first, as in the other lists. */
  messages: Message[]
  notices: Notice[]
  followed?: { channel: Channel; to: string }
  lanes: Lane[]
  decisions: Decided[]
}
