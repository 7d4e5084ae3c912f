import { readFileSync } from 'node:fs'
import tls from 'node:tls'

/**
 * Trusts the PEM certificates of a file in addition to Node's, for every TLS connection that this process opens from
 * now on: PostgreSQL, Redis, SMTP and HTTPS. NODE_EXTRA_CA_CERTS can't be set in `.env`, because Node reads it
 * earlier. Ends the process if the file has no usable certificate: servers would be refused without a reason.
 */
export function trustCaFile(file: string | undefined): void {
  if (!file) return
  try {
    const parts = readFileSync(file, 'utf8').split(/(?<=-----END CERTIFICATE-----)/)
    const certificates = parts.filter((part) => part.includes('-----BEGIN CERTIFICATE-----'))
    if (certificates.length === 0)
      throw Object.assign(new Error(), { code: 'no certificate in PEM' })
    tls.setDefaultCACertificates([...tls.getCACertificates('default'), ...certificates])
  } catch (error) {
    const { code } = error as { code?: string }
    console.error(`Postern can not start: CA_FILE can not be read (${code}).`)
    process.exit(1)
  }
}
