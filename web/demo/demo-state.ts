/** What the demo's server tells its page: src/dev makes it, the page shows it. Types alone, so both may know them. */
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
}

export interface Lane {
  /** Where the rule is declared. */
  policy: string
  rule: string
  mode: 'enforce' | 'observe' | 'challenge'
  kind: 'sliding' | 'fixed' | 'bucket' | 'calendar' | 'lockout'
  window: string
  /** 0 for a calendar rule; of a bucket, how long all of it takes to come back. */
  windowMs: number
  limit: number
  used: number
  resetsInMs: number
  lockedForMs?: number
  /** When what is used was taken, newest first, as far as this process saw it. */
  takenAtMs: number[]
}

export interface Decided {
  asked: 'send' | 'check'
  atMs: number
  refusal?: { policy: string; rule: string; window: string; retryAfterMs: number }
}

export interface DemoState {
  /** By the server's clock, as every other time here. */
  nowMs: number
  worker: { kind: 'starting' | 'ready'; pid: number } | { kind: 'down'; restartsInMs: number }
  /** Null where the policy file has providers of its own. */
  provider: { name: string; reserve: string; isOff: boolean } | null
  /** Newest first, as the others. */
  messages: Message[]
  notices: Notice[]
  followed?: { channel: Channel; to: string }
  lanes: Lane[]
  decisions: Decided[]
}
