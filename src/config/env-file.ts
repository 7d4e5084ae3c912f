import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import tls from 'node:tls'
import { parseEnv } from 'node:util'

/** Far above the size of real settings. A larger file named .env is something else, and would take minutes to read. */
const maxBytes = 1_048_576

/**
 * Reads `.env` of the current folder into the environment, first in every command. Variables that are already set
 * stay, even if empty. Ends the process if the file exists but is unreadable. Otherwise its secrets would be missing, and
 * no message would name the cause. Then trusts the authorities of CA_FILE.
 */
export function loadEnvFile(): void {
  orEnd('.env', readEnvFile)
  const { CA_FILE } = process.env
  if (CA_FILE) orEnd('CA_FILE', () => trustCaFile(CA_FILE))
}

function orEnd(name: string, read: () => void): void {
  try {
    read()
  } catch (error) {
    const { code } = error as { code?: string }
    console.error(`Postern cannot start: ${name} cannot be read (${code}).`)
    process.exit(1)
  }
}

function readEnvFile(): void {
  const { size } = statSync('.env', { throwIfNoEntry: false }) ?? {}
  if (size === undefined) return
  if (size > maxBytes) throw Object.assign(new Error(), { code: 'above 1 MB' })
  const bytes = readFileSync('.env')
  if (!isUtf8(bytes) || bytes.includes(0)) {
    throw Object.assign(new Error(), { code: 'not UTF-8; save it as UTF-8' })
  }
  // Some editors begin a file with a byte order mark, which would become part of the first name.
  const values = parseEnv(bytes.toString().replace(/^\uFEFF/, ''))
  for (const [name, value] of Object.entries(values)) process.env[name] ??= value
}

/**
 * Trusts the PEM certificates of a file in addition to Node's, for every TLS connection that this process opens from
 * now on: PostgreSQL, Redis, SMTP and HTTPS. NODE_EXTRA_CA_CERTS can't be set in `.env`, because Node reads it
 * earlier. A file without a usable certificate is an error.
 */
function trustCaFile(file: string): void {
  const parts = readFileSync(file, 'utf8').split(/(?<=-----END CERTIFICATE-----)/)
  const certificates = parts.filter((part) => part.includes('-----BEGIN CERTIFICATE-----'))
  if (certificates.length === 0) throw Object.assign(new Error(), { code: 'no certificate in PEM' })
  tls.setDefaultCACertificates([...tls.getCACertificates('default'), ...certificates])
}
