/** Signatures, checked by another implementation: python3-dkim of Debian. */
import { execFileSync } from 'node:child_process'
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import type { Message } from '../../src/providers/provider.ts'
import { findProgram } from '../tools/debian-server.ts'
import { closeLater } from '../tools/release.ts'
import smtp, { conformance, from } from './cases/smtp.ts'
import { startSmtpFarEnd } from './far-ends/smtp.ts'

const privateKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
  type: 'pkcs8',
  format: 'pem',
})
const published = createPublicKey(privateKey).export({ type: 'spki', format: 'der' })
const record = `v=DKIM1; k=rsa; p=${published.toString('base64')}`

const judge = `
import sys, dkim
name, record = sys.argv[1:]
records = { name + '.': record }
print(dkim.verify(sys.stdin.buffer.read(), dnsfunc=lambda asked, timeout=5: records[asked.decode()].encode()))
`

/** A signature that refers to another name fails. */
function isVerified(mail: string, name = 'mail2026._domainkey.acme.test'): boolean {
  const verdict = execFileSync('/usr/bin/python3', ['-c', judge, name, record], { input: mail })
  return verdict.toString().trim() === 'True'
}

beforeAll(() => void findProgram('dkimverify', 'python3-dkim'), 120_000)

async function mailOf(message: Partial<Message>): Promise<string> {
  const farEnd = closeLater(await startSmtpFarEnd())
  const dkim = { domain: 'acme.test', selector: 'mail2026', privateKey }
  const settings = smtp.settings.parse({ url: `smtp://127.0.0.1:${farEnd.port}`, from, dkim })
  const deps = { timeoutMs: 5_000, concurrency: 1, clock: Date.now }
  const provider = closeLater(smtp.create('mail', settings, deps))
  const whole = { ...conformance.message, noticeId: newId(), ...message }
  const result = await provider.send(whole, new AbortController().signal)
  expect(result.kind).toBe('accepted')
  return farEnd.taken[0]?.mail ?? ''
}

test.each<[string, Partial<Message>]>([
  ['text and HTML', {}],
  [
    'Chinese, a long subject, and List-Unsubscribe',
    {
      subject: '您的验证码'.repeat(30),
      text: '您的验证码是 738291，五分钟内有效。'.repeat(20),
      listUnsubscribe: 'https://acme.test/off?u=1',
    },
  ],
  [
    'dots at the beginnings of lines, spaces at the ends, empty lines at the end',
    { text: '.\n..\nspaces  \t \n\n-- \nfrom\n\n\n', html: '<p>.</p>\n.\n  \n\n' },
  ],
  ['lines that are too long for SMTP', { text: 'x'.repeat(5_000), html: '<i>y</i>'.repeat(900) }],
])(
  'a mail with %s: the signature is right, with the key that is published alone',
  async (_, message) => {
    const mail = await mailOf(message)
    expect(isVerified(mail)).toBe(true)
    expect(isVerified(mail.replace('-Type', '-type'))).toBe(true)
    for (const [part, other] of [
      [/^Subject: ./m, 'Subject: !'],
      [/^From: /m, 'From: Eve '],
      [/^Auto-Submitted: auto-generated/m, 'Auto-Submitted: no'],
      [/^List-Unsubscribe-Post: List/m, 'List-Unsubscribe-Post: Off'],
      [/\r\n\r\n/, '\r\n\r\n!'],
    ] as const) {
      const changed = mail.replace(part, other)
      if (changed !== mail) expect(isVerified(changed)).toBe(false)
    }
  },
)
