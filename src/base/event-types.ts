/** The types of events that receivers can get; docs/events.md lists the same. */
export const eventTypes = [
  'notice.sent',
  'notice.delivered',
  'notice.failed',
  'notice.expired',
  'captcha.passed',
  'captcha.locked',
] as const

export type EventType = (typeof eventTypes)[number]
