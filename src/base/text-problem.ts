/** The reason why a text is unsafe in a database, a subject line or a log; undefined for a safe text. */
export function textProblem(text: string): string | undefined {
  // Most texts are plain ASCII and need no further checks.
  if (/^[\x20-\x7e]*$/.test(text)) return undefined
  if (!text.isWellFormed()) return 'contains half a character (a lone surrogate)'
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)) return 'contains a control character or line break'
  // These characters reorder the ones after them, so a text reads as another one (CVE-2021-42574).
  return /[\u202a-\u202e\u2066-\u2069]/.test(text) ? 'contains a text direction control' : undefined
}
