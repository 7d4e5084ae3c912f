/** `recipients.refuse`: numbers, addresses, and files with one number or address per line. */
import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import type { FileProblem } from './located-yaml.ts'

/** Far above the size of any real list, and far below the memory of a process. */
const maxBytes = 16_777_216
/** A running process reads the files again, and answers requests between two parts. Each part is about a thousand lines. */
const partBytes = 16_384
const maxShown = 20

/** `read` returns the number or the mailbox that is refused, or undefined for a text that is neither. */
export async function readRefused(
  entries: readonly string[],
  folder: string,
  read: (to: string) => string | undefined,
): Promise<{ list: ReadonlySet<string>; found: FileProblem[] }> {
  const list = new Set<string>()
  const found: FileProblem[] = []
  for (const [index, entry] of entries.entries()) {
    const report = (message: string) =>
      found.push({ path: ['recipients', 'refuse', index], message })
    if (/^\.{0,2}\//.test(entry)) await readFile(resolve(folder, entry), report)
    else add(entry, () => report(noRecipient))
  }
  return { list, found: found.slice(0, maxShown) }

  function add(text: string, onWrong: () => void): void {
    const to = read(text)
    if (to === undefined) onWrong()
    else list.add(to)
  }

  async function readFile(path: string, report: (message: string) => void): Promise<void> {
    let lines = 0
    const addLine = (line: string) => {
      lines++
      // This also removes a byte order mark.
      const text = line.trim()
      if (text === '' || text.startsWith('#')) return
      add(text, () => report(`${path}:${lines} ${noRecipient}`))
    }
    try {
      const options = { encoding: 'utf8', highWaterMark: partBytes, end: maxBytes } as const
      const file = createReadStream(path, options)
      let begun = ''
      for await (const part of file) {
        if (file.bytesRead > maxBytes) throw Object.assign(new Error(), { code: 'above 16 MB' })
        const [first, ...others] = (part as string).split('\n')
        begun += first
        for (const next of others) {
          addLine(begun)
          begun = next
        }
      }
      addLine(begun)
    } catch (error) {
      report(`${path} cannot be read (${(error as { code?: string }).code})`)
    }
  }
}

const noRecipient = 'is neither a phone number nor a mail address'
