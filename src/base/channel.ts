/** What can carry a message, and the list of it for loops and schemas. */
export const channels = ['sms', 'email'] as const

export type Channel = (typeof channels)[number]
