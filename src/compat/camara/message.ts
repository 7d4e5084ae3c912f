/**
 * The caller's text, in which every `{{code}}` stands for the code. The text is data: nothing else in it is replaced, and
 * Handlebars never reads it. It is for SMS only, so there is no HTML.
 *
 * Variables have no line breaks, but a text can have them: the line for WebOTP stands alone. So the variable contains `%0A`
 * for a line break, and `%25` for a percent sign.
 */
import { textProblem } from '../../base/text-problem.ts'

export const messageTemplate = {
  sms: {
    variables: new Set(['message', 'code']),
    render: ({ message = '', code = '' }: Readonly<Record<string, string>>) => ({
      text: message.replaceAll('%0A', '\n').replaceAll('%25', '%').replaceAll('{{code}}', code),
    }),
  },
}

/** The variables for a text; null for a text with characters that no message may have. */
export function messageParams(text: string): { message: string } | null {
  const lines = text.split(/\r?\n/)
  if (lines.some((line) => textProblem(line))) return null
  return { message: lines.join('\n').replaceAll('%', '%25').replaceAll('\n', '%0A') }
}
