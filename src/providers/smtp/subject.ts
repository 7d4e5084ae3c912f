import { encodeWord } from 'nodemailer/lib/mime-funcs'

/**
 * The header `Subject` of a text that holds what callers wrote. nodemailer leaves two kinds of text as they are: an
 * encoded-word (RFC 2047), which the reader's program would show decoded, with whatever the door keeps out of a
 * text; and a word without a space, which can't be folded and may make a line of more than 998 signs (RFC 5322,
 * 2.1.1). Such a subject is encoded as a whole.
 */
export function subjectHeader(
  subject: string,
): { value: string; prepared: boolean; foldLines: boolean } | string {
  const isFoldable = subject.split(' ').every((word) => word.length < longestWord)
  if (isFoldable && !subject.includes('=?')) return subject
  const oneLine = subject.replace(/[\r\n]+/g, ' ')
  return { value: encodeWord(oneLine, 'B', longestWord), prepared: true, foldLines: true }
}

/** A line of 76 signs has room for it behind the header's name. */
const longestWord = 52
