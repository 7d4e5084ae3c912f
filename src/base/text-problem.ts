/** Why a text could surprise whoever stores it, shows it in a subject line or prints it in a log. */
export function textProblem(text: string): string | undefined {
  // What most texts are made of needs no closer look.
  if (/^[\x20-\x7e]*$/.test(text)) return undefined
  if (!text.isWellFormed()) return 'holds half a character (a lone surrogate)'
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)) return 'holds a control character or line break'
  // These reorder what follows them, so that a text reads as another one (CVE-2021-42574).
  return /[\u202a-\u202e\u2066-\u2069]/.test(text) ? 'holds a text direction control' : undefined
}
