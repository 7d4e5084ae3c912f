import en from './texts.en.json' with { type: 'json' }
import zh from './texts.zh.json' with { type: 'json' }

export type TextName = keyof typeof en
export type Text = (name: TextName, values?: Readonly<Record<string, string | number>>) => string

const language = () => document.documentElement.lang

export const text: Text = (name, values = {}) => {
  const texts: Record<TextName, string> = language() === 'zh' ? zh : en
  return texts[name].replace(/\{(\w+)\}/g, (written, key) => String(values[key] ?? written))
}

/** Exact for short times, rough for long times: `0.084 s`, `41.3 s`, `14:52`, `23 h 58 min`. */
export function duration(ms: number): string {
  const isChinese = language() === 'zh'
  if (ms < 1_000) return `${(ms / 1_000).toFixed(3)} ${isChinese ? '秒' : 's'}`
  if (ms < 100_000) return `${(ms / 1_000).toFixed(1)} ${isChinese ? '秒' : 's'}`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 100) return `${minutes}:${String(Math.floor(ms / 1_000) % 60).padStart(2, '0')}`
  const hours = Math.floor(minutes / 60)
  return isChinese ? `${hours} 小时 ${minutes % 60} 分` : `${hours} h ${minutes % 60} min`
}

export const clock = (ms: number) => new Date(ms).toLocaleTimeString(language(), { hour12: false })

export const count = (n: number) => n.toLocaleString(language())
