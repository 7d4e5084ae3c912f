import type { Bind, Delivered } from './pdu.ts'

export type Role = 'transmitter' | 'receiver' | 'transceiver'

export interface SessionOptions extends Bind {
  readonly role: Role
  readonly host: string
  readonly port: number
  readonly isSecure: boolean
  readonly timeoutMs: number
  readonly enquireEveryMs: number
  readonly window: number
  /** Undefined: a packet that cannot be read. Resolves to the command_status of the answer. */
  readonly onDeliver: (delivered: Delivered | undefined) => Promise<number>
  readonly onEnd: (end: SessionEnd) => void
}

export interface SessionEnd {
  readonly reason: string
  /** The SMSC refused the bind or flooded the session, so another session would end in the same way. */
  readonly isRefused: boolean
  /** The status of a refused bind. */
  readonly bindStatus?: number
}
