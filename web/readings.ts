/** Small readings of what people and the service write. */

/** Of whatever script: full-width ones come from East Asian keyboards, others from Arabic and Persian ones. */
export function digitsIn(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/[٠-٩۰-۹]/g, (digit) => String((digit.codePointAt(0) as number) & 15))
    .replace(/\D/g, '')
}

/** `0:42`, `14:59`, `3:12:00`: understood in every language. */
export function timeLeft(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60]
  const [hours = 0, minutes = 0, rest = 0] = parts
  const two = (value: number) => String(value).padStart(2, '0')
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`
}

/** Ids are UUIDs of version 7, which begin with their time. */
export const idTimeMs = (id: string) => Number.parseInt(id.replace('-', '').slice(0, 12), 16)

/** So far the clocks here and there may be apart without a word. */
const clockToleranceMs = 1_000

/** How far our clock is ahead of the service's, which made the id after `askedAtMs` and before now. 0: about right. */
export function clockAheadMs(id: string, askedAtMs: number): number {
  const nowMs = Date.now()
  const aheadMs = nowMs - idTimeMs(id)
  const isRight = aheadMs > -clockToleranceMs && aheadMs < nowMs - askedAtMs + clockToleranceMs
  return isRight ? 0 : aheadMs
}

/** How long the site's server will take it. Undefined when it does not say. */
export function lifeOfPassMs(pass: string): number | undefined {
  try {
    const payload = pass.split('.')[1]?.replaceAll('-', '+').replaceAll('_', '/') ?? ''
    const { iat, exp } = JSON.parse(atob(payload))
    return (exp - iat) * 1_000 || undefined
  } catch {
    return undefined
  }
}
