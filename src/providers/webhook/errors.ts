import type { SendResult } from '../provider.ts'

/** The statuses that speak of the message; any other speaks of the service. */
const aboutMessage = [400, 404, 422]

export function resultOfStatus(status: number): SendResult {
  const kind = aboutMessage.includes(status) ? 'rejected' : 'unavailable'
  return { kind, detail: `webhook HTTP ${status}` }
}
