import type { Request } from 'express'
import { limitableAddress } from '../base/limitable-address.ts'

/** The address that a trusted proxy names. If that is not an address, the address of the connection. */
export const addressOf = ({ ip = '', socket }: Pick<Request, 'ip' | 'socket'>): string =>
  limitableAddress(ip) ?? limitableAddress(socket?.remoteAddress ?? '') ?? ''
