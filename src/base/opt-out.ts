import { z } from 'zod'

/**
 * A person's answer to a message of a provider: no more messages, or messages again. It names a number and no message, so
 * `src/notice/opt-outs.ts` finds the apps that it concerns.
 */
export const optOut = z.object({
  /** With or without a plus, international or national: SMSCs write numbers in many ways. */
  number: z.string().regex(/^\+?\d{6,20}$/),
  /** False: the person wants messages again. */
  isOut: z.boolean(),
})
export type OptOut = z.infer<typeof optOut>

/**
 * The words that carriers and vendors take for an opt-out and its end, as the only word of a message
 * (https://help.twilio.com/articles/223134027).
 */
const outWords = [
  ...['STOP', 'STOPALL', 'STOP ALL', 'UNSUBSCRIBE', 'CANCEL', 'END', 'QUIT', 'REVOKE', 'OPTOUT'],
]
const inWords = ['START', 'UNSTOP']

/** The opt-out in the text of a message from this number; undefined for any other text. */
export function optOutIn(number: string, text: string): OptOut | undefined {
  if (text.length > 40) return undefined
  const word = text
    .replaceAll(/[\s.!"']+/g, ' ')
    .trim()
    .toUpperCase()
  const isOut = outWords.includes(word)
  if (!isOut && !inWords.includes(word)) return undefined
  return optOut.safeParse({ number, isOut }).data
}
