import { readFileSync, statSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { trustCaFile } from './trust-ca-file.ts'

/** Far above the size of real settings. A larger file named .env is something else, and would take minutes to read. */
const maxBytes = 1_048_576

/**
 * Reads `.env` of the current folder into the environment, first in every command. Variables that are already set
 * stay, even if empty. Ends the process if the file exists but is unreadable: its secrets would be missing without a
 * reason. Then trusts the authorities of CA_FILE.
 */
export function loadEnvFile(): void {
  readEnvFile()
  trustCaFile(process.env.CA_FILE)
}

function readEnvFile(): void {
  let text: string
  try {
    if (statSync('.env').size > maxBytes) throw Object.assign(new Error(), { code: 'above 1 MB' })
    text = readFileSync('.env', 'utf8')
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === 'ENOENT') return
    console.error(`Postern can not start: .env can not be read (${code}).`)
    process.exit(1)
  }
  // Some editors begin a file with a byte order mark, which would become part of the first name.
  const values = parseEnv(text.replace(/^\uFEFF/, ''))
  for (const [name, value] of Object.entries(values)) process.env[name] ??= value
}
