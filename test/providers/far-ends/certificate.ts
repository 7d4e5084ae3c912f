import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import tls from 'node:tls'
import { releaseLater } from '../../tools/release.ts'

/**
 * A self-signed certificate for `localhost` and 127.0.0.1, made again for each run: no key is in the repository and
 * nothing expires. The DER is written here, because Node reads certificates but makes none.
 */
export function makeCertificate(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = sequence(oid([0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]))
  const name = sequence(der(0x31, sequence(oid([0x55, 0x04, 0x03]), der(0x0c, 'localhost'))))
  const day = 86_400_000
  const validity = sequence(utcTime(Date.now() - day), utcTime(Date.now() + 30 * day))
  const names = sequence(der(0x82, 'localhost'), der(0x87, Buffer.from([127, 0, 0, 1])))
  const subjectAltName = sequence(oid([0x55, 0x1d, 0x11]), der(0x04, names))
  const isAuthority = sequence(der(0x01, Buffer.from([0xff])))
  const basicConstraints = sequence(oid([0x55, 0x1d, 0x13]), der(0x04, isAuthority))
  const toBeSigned = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(subjectAltName, basicConstraints)),
  )
  const signature = sign('sha256', toBeSigned, privateKey)
  const certificate = sequence(
    toBeSigned,
    ecdsaWithSha256,
    der(0x03, Buffer.concat([Buffer.from([0]), signature])),
  )
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? []
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
  }
}

/** This process trusts the certificate until the test ends. */
export function trust({ cert }: { cert: string }): void {
  const usual = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...usual, cert])
  releaseLater(() => tls.setDefaultCACertificates(usual))
}

function der(tag: number, content: Buffer | string): Buffer {
  const body = Buffer.from(content as string)
  const { length } = body
  const head =
    length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...head]), body])
}

const sequence = (...parts: Buffer[]) => der(0x30, Buffer.concat(parts))
const oid = (bytes: number[]) => der(0x06, Buffer.from(bytes))
const utcTime = (atMs: number) =>
  der(0x17, `${new Date(atMs).toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`)
