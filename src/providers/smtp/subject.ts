import { encodeWord } from 'nodemailer/lib/mime-funcs'

/**
 * The header `Subject`, whose text contains values of callers. nodemailer does not encode two kinds of text. One is an
 * encoded-word (RFC 2047): mail programs decode it, and could show characters that the API forbids. The other is a long
 * word without a space: it can't be folded, so a line may exceed 998 characters (RFC 5322, 2.1.1). Such a subject is
 * encoded as a whole.
 */
export function subjectHeader(
  subject: string,
): { value: string; prepared: boolean; foldLines: boolean } | string {
  const isFoldable = subject.split(' ').every((word) => word.length < longestWord)
  if (isFoldable && !subject.includes('=?')) return subject
  const oneLine = subject.replace(/[\r\n]+/g, ' ')
  return { value: encodeWord(oneLine, 'B', longestWord), prepared: true, foldLines: true }
}

/** Fits into a line of 76 characters after the name of the header. */
const longestWord = 52
