export const channels = ['sms', 'email', 'voice', 'whatsapp', 'telegram'] as const

export type Channel = (typeof channels)[number]
