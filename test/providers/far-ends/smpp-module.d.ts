/** The part of the npm package `smpp` that the far end uses; it ships no types. */
declare module 'smpp' {
  import type { Server as NetServer, Socket } from 'node:net'

  export interface SmppPdu {
    readonly command: string
    readonly command_status: number
    readonly system_id: string
    readonly password: string
    readonly system_type: string
    readonly source_addr: string
    readonly source_addr_ton: number
    readonly destination_addr: string
    readonly dest_addr_ton: number
    readonly source_addr_npi: number
    readonly dest_addr_npi: number
    readonly validity_period: string | Date
    readonly esm_class: number
    readonly data_coding: number
    readonly registered_delivery: number
    readonly short_message: { readonly message?: string; readonly udh?: readonly Buffer[] }
    readonly message_payload?: { readonly message?: string }
    response(options?: Record<string, unknown>): SmppPdu
    toBuffer(): Buffer
  }

  export interface SmppSession {
    readonly socket: Socket
    on(event: 'error', listener: (error: Error) => void): void
    on(event: 'close', listener: () => void): void
    on(event: string, listener: (pdu: SmppPdu) => void): void
    send(pdu: SmppPdu, answered?: (answer: SmppPdu) => void): boolean
    deliver_sm(options: Record<string, unknown>, answered: (pdu: SmppPdu) => void): boolean
    enquire_link(answered: (pdu: SmppPdu) => void): boolean
    unbind(answered: (pdu: SmppPdu) => void): boolean
  }

  const smpp: {
    createServer(
      options: { key?: string; cert?: string },
      listener: (session: SmppSession) => void,
    ): NetServer
    PDU: new (command: string, options?: Record<string, unknown>) => SmppPdu
  }
  export default smpp
}
