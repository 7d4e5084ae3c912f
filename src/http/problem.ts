import { type Problem, problems } from '../base/problems.ts'

export interface Answer {
  status: number
  headers?: Readonly<Record<string, string>>
  /** Sent as JSON; nothing when absent. */
  body?: unknown
  /** Sent as it is, with the content-type among `headers`. */
  text?: string
}

export const problemMediaType = 'application/problem+json'

/** The answer that says what went wrong (RFC 9457), its `detail` in the caller's language. */
export function problemAnswer(problem: Problem, acceptLanguage: string | undefined): Answer {
  const { code, members } = problem
  const { status, title } = problems[code]
  // A rule's own words are the detail.
  const { message, ...shown } = members
  const { retryAfterMs } = members
  const headers: Record<string, string> = { 'content-type': problemMediaType }
  let detail: string =
    typeof message === 'string' ? message : problems[code][preferredLanguage(acceptLanguage)]
  if (typeof retryAfterMs === 'number') {
    const seconds = String(Math.ceil(retryAfterMs / 1_000))
    detail = detail.replace('{seconds}', seconds)
    // Spelled as the limiter spells it: two spellings would be two headers.
    headers['Retry-After'] = seconds
  }
  return {
    status,
    headers: Object.assign(headers, problem.headers),
    body: { type: `urn:postern:problem:${code}`, title, status, detail, code, ...shown },
  }
}

/** The better liked of the two languages we speak, by `q`; English when it is a tie or neither is named. */
export function preferredLanguage(acceptLanguage: string | undefined): 'en' | 'zh' {
  if (!acceptLanguage || !/zh/i.test(acceptLanguage)) return 'en'
  const liking = { en: 0, zh: 0 }
  for (const range of acceptLanguage.toLowerCase().split(',', 20)) {
    const match = /^\s*(en|zh)(?:-[a-z0-9-]+)?\s*(?:;\s*q=([01](?:\.\d{0,3})?))?\s*$/.exec(range)
    if (!match) continue
    const language = match[1] as 'en' | 'zh'
    liking[language] = Math.max(liking[language], Number(match[2] ?? 1))
  }
  return liking.zh > liking.en ? 'zh' : 'en'
}
