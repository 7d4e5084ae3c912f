/**
 * SpamAssassin and rspamd judge the mails of the shipped templates. SpamAssassin uses no network, and rspamd only the
 * name server of this test.
 */
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { findFreePort } from '../../src/dev/server-process.ts'
import { findProgram, isOpen, serverFolder, startDebianServer } from '../tools/debian-server.ts'
import { startDns } from '../tools/dns.ts'
import { loadTemplates } from '../tools/load-templates.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import smtp, { from } from './cases/smtp.ts'
import { startSmtpFarEnd } from './far-ends/smtp.ts'

/** A public address. The judges mind addresses that are reserved for documentation. */
const serverIp = '93.184.215.14'
const sender = 'no-reply@acme.test'
const recipient = 'ada@example.test'
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const published = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')

/** The header that the recipient's server adds at the top of a mail. */
const arrival = [
  `Return-Path: <${sender}>`,
  `Received: from mail.acme.test (mail.acme.test [${serverIp}])`,
  '\tby mx.example.test (Postfix) with ESMTPS id 4bX2Kf0Xp1z9',
  `\tfor <${recipient}>; ${new Date().toUTCString().replace('GMT', '+0000')}`,
  '',
].join('\r\n')

/** Each template in each locale, as text alone and with HTML; codes also with a link. */
async function makeMails(): Promise<Map<string, string>> {
  const farEnd = await startSmtpFarEnd()
  const settings = smtp.settings.parse({
    url: `smtp://127.0.0.1:${farEnd.port}`,
    from,
    dkim: {
      ...{ domain: 'acme.test', selector: 's1' },
      privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    },
  })
  const deps = { timeoutMs: 5_000, concurrency: 1, clock: Date.now }
  const provider = smtp.create('mail', settings, deps)
  const templates = loadTemplates(join(repositoryRoot, 'templates'))
  const plain = { code: '738291', validity: '5 minutes', name: 'Ada' }
  const link = `https://acme.test/verify#postern-code=738291&id=${newId()}`
  const mails = new Map<string, string>()
  for (const template of templates.names) {
    const values = template === 'captcha' ? [plain, { ...plain, link }] : [plain]
    const drafts = templates
      .locales(template, 'email')
      .flatMap((locale) => values.map((variables) => ({ locale, variables })))
    for (const { locale, variables } of drafts) {
      const { html, ...rest } = templates.render(template, 'email', locale, variables)
      const head = {
        channel: 'email',
        to: recipient,
        template,
        locale,
        variables,
        ...rest,
      } as const
      for (const part of html === undefined ? [{}] : [{}, { html }]) {
        const message = { noticeId: newId(), ...head, ...part }
        const result = await provider.send(message, new AbortController().signal)
        expect(result.kind).toBe('accepted')
        const ofLink = 'link' in variables ? ['link'] : []
        const name = [template, locale, ...Object.keys(part), ...ofLink].join(' ')
        mails.set(name, arrival + farEnd.taken.at(-1)?.mail)
      }
    }
  }
  await provider.close()
  await farEnd.close()
  return mails
}

const spamText = `From: "!!! WINNER !!!" <x1982734@mail.acme.test>
To: undisclosed-recipients:;
Subject: FREE V1AGRA!!! CLICK HERE NOW $$$
Date: Thu, 1 Jan 1998 00:00:00 +0000
Content-Type: text/html

<html><body><font color=white>hidden</font><a href="http://93.184.215.14/viagra">CLICK HERE</a> to get 100% FREE
VIAGRA, dear friend, you have won $1,000,000.00 !!!</body></html>
`
const spam = arrival + spamText.replaceAll('\n', '\r\n')

const mails = await makeMails()

test('there is at least one mail of each template, and one with HTML', () => {
  expect([...mails.keys()]).toEqual(
    expect.arrayContaining(['captcha en html', 'captcha de html link', 'welcome zh']),
  )
})

/** Prints a score and the names of the rules for each mail. NUL separates the mails. */
const spamAssassin = `
use Mail::SpamAssassin;
my $judge = Mail::SpamAssassin->new({
  local_tests_only => 1, dont_copy_prefs => 1, userprefs_filename => '/dev/null', userstate_dir => $ARGV[0],
  post_config_text => "use_bayes 0\\nuse_auto_welcomelist 0\\n",
});
local $/ = "\\0";
binmode STDIN;
while (my $mail = <STDIN>) {
  chomp $mail;
  my $verdict = $judge->check_message_text($mail);
  printf "%.1f %s\\n", $verdict->get_score(), $verdict->get_names_of_tests_hit();
}
`

test('SpamAssassin: each scores at most 0.5, and spam more', () => {
  findProgram('spamassassin')
  const input = [...mails.values(), spam].join('\0')
  const said = execFileSync('perl', ['-e', spamAssassin, serverFolder('spamassassin')], { input })
  const verdicts = said.toString().trim().split('\n')
  expect(verdicts).toHaveLength(mails.size + 1)
  expect(Number.parseFloat(verdicts.pop() ?? '')).toBeGreaterThan(5)
  const scored = [...mails.keys()].map((name, index) => `${name}: ${verdicts[index]}`)
  for (const each of scored) {
    expect(Number(/: (-?[\d.]+) /.exec(each)?.[1]), each).toBeLessThanOrEqual(0.5)
  }
})

async function startRspamd(): Promise<(mail: string) => Promise<Verdict>> {
  const program = findProgram('rspamd')
  const folder = serverFolder('rspamd')
  const port = await findFreePort()
  const dns = await startDns({
    'acme.test': {
      mx: [[10, 'mail.acme.test']],
      // rspamd asks five times for a type without records.
      ...{ a: [serverIp], aaaa: ['20010db8000000000000000000000025'] },
      txt: [`v=spf1 ip4:${serverIp} -all`],
    },
    'mail.acme.test': { a: [serverIp] },
    '_dmarc.acme.test': { txt: ['v=DMARC1; p=reject'] },
    's1._domainkey.acme.test': { txt: [`v=DKIM1; k=rsa; p=${published}`] },
  })
  const local = {
    // Compiling the whole list of top-level domains would take many seconds.
    'override.d/options.inc': `url_tld = "${folder}/domains"; disable_hyperscan = true; dns { nameserver = ["${dns.address}"]; }`,
    domains: 'com\norg\ntest\n',
    'override.d/worker-normal.inc': `bind_socket = "127.0.0.1:${port}"; count = 1;`,
    'override.d/worker-controller.inc': 'enabled = false;',
    'override.d/worker-proxy.inc': 'enabled = false;',
    'override.d/logging.inc': 'type = "console"; level = "warning";',
    'local.d/fuzzy_check.conf': 'enabled = false;',
  }
  for (const each of ['local.d', 'override.d']) mkdirSync(join(folder, each))
  for (const [name, text] of Object.entries(local)) writeFileSync(join(folder, name), text)
  const folders = ['LOCAL_CONFDIR', 'DBDIR', 'RUNDIR', 'LOGDIR'].map(
    (name) => `--var=${name}=${folder}`,
  )
  await startDebianServer(folder, [program, '-f', '-i', ...folders], () => isOpen(port))
  return async (mail) => {
    const headers = {
      ...{ ip: serverIp, helo: 'mail.acme.test', hostname: 'mail.acme.test' },
      ...{ from: sender, rcpt: recipient, connection: 'close' },
    }
    const url = `http://127.0.0.1:${port}/checkv2`
    const response = await fetch(url, { method: 'POST', headers, body: mail })
    return (await response.json()) as Verdict
  }
}

interface Verdict {
  readonly action: string
  readonly score: number
  readonly symbols: Readonly<Record<string, { readonly score: number }>>
}

test('rspamd: SPF, DKIM and DMARC of each are right, and nothing is bad; spam is', async () => {
  const judge = await startRspamd()
  for (const [name, mail] of mails) {
    const { action, symbols } = await judge(mail)
    expect({ name, action }).toEqual({ name, action: 'no action' })
    expect(Object.keys(symbols)).toEqual(
      expect.arrayContaining(['R_SPF_ALLOW', 'R_DKIM_ALLOW', 'DMARC_POLICY_ALLOW']),
    )
    const bad = Object.entries(symbols).filter(([, { score }]) => score > 0)
    expect({ name, bad }).toEqual({ name, bad: [] })
  }
  expect((await judge(spam)).action).not.toBe('no action')
})
