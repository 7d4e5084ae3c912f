/** `recipients.refuse`: numbers, addresses, and files with one number or address per line. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { FileProblem } from './located-yaml.ts'

/** Far above the size of any real list, and far below the memory of a process. */
const maxBytes = 16_777_216
const maxShown = 20

/**
 * `list`: the recipients in their normal form. `read` returns the normal form, or undefined for a text that is neither a
 * number nor an address.
 */
export function readRefused(
  entries: readonly string[],
  folder: string,
  read: (to: string) => string | undefined,
): { list: string[]; found: FileProblem[] } {
  const list = new Set<string>()
  const found: FileProblem[] = []
  for (const [index, entry] of entries.entries()) {
    const report = (message: string) =>
      found.push({ path: ['recipients', 'refuse', index], message })
    if (/^\.{0,2}\//.test(entry)) readFile(resolve(folder, entry), report)
    else add(entry, () => report(noRecipient))
  }
  return { list: [...list], found: found.slice(0, maxShown) }

  function add(text: string, onWrong: () => void): void {
    const to = read(text)
    if (to === undefined) onWrong()
    else list.add(to)
  }

  function readFile(path: string, report: (message: string) => void): void {
    try {
      const bytes = readFileSync(path)
      if (bytes.length > maxBytes) throw Object.assign(new Error(), { code: 'above 16 MB' })
      for (const [at, line] of bytes
        .toString()
        .replace(/^\uFEFF/, '')
        .split('\n')
        .entries()) {
        const text = line.trim()
        if (text === '' || text.startsWith('#')) continue
        add(text, () => report(`${path}:${at + 1} ${noRecipient}`))
      }
    } catch (error) {
      report(`${path} cannot be read (${(error as { code?: string }).code})`)
    }
  }
}

const noRecipient = 'is neither a phone number nor a mail address'
