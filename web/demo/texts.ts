import { languages } from '../../src/i18n/languages.ts'
import { fill, type Values } from '../../src/i18n/text.ts'

export type TextName = keyof typeof languages.en.demo
export type Text = (name: TextName, values?: Values) => string

const language = () => document.documentElement.lang
const own = () => languages[language() as keyof typeof languages] ?? languages.en

export const text: Text = (name, values) => fill(own().demo[name], language(), values)

/** Exact for short times, rough for long times: `0.084 s`, `41.3 s`, `14:52`, `23 h 58 min`. */
export function duration(ms: number): string {
  const { s, m, h } = own().units
  const exact = (digits: number) => {
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits }
    return fill(s, language(), { n: (ms / 1_000).toLocaleString(language(), options) })
  }
  if (ms < 1_000) return exact(3)
  if (ms < 100_000) return exact(1)
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 100) return `${minutes}:${String(Math.floor(ms / 1_000) % 60).padStart(2, '0')}`
  const hours = fill(h, language(), { n: Math.floor(minutes / 60) })
  return `${hours} ${fill(m, language(), { n: minutes % 60 })}`
}

export const clock = (ms: number) => new Date(ms).toLocaleTimeString(language(), { hour12: false })

export const count = (n: number) => n.toLocaleString(language())
