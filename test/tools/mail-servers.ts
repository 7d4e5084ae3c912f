/** Mail servers of Debian, run on loopback. They pass all accepted mails to one port of this machine. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import {
  findFreePort,
  readIfThere,
  type ServerProcess,
  startServerProcess,
  untilReady,
} from '../../src/dev/server-process.ts'
import { findProgram, isOpen, makeCertificate, serverFolder } from './debian-server.ts'
import { releaseLater } from './release.ts'
import { eventually } from './wait.ts'

export interface MailServer {
  readonly port: number
  /** The authority that has signed the server's certificate, for `localhost`. */
  readonly caFile: string
  start(): Promise<void>
  stop(): Promise<void>
  log(): string
}

interface Site {
  readonly folder: string
  readonly port: number
  readonly keyFile: string
  readonly certFile: string
  readonly relayPort: number
  readonly judgePort: number
}

interface Plan {
  readonly command: readonly [string, ...string[]]
  readonly logFile: string
}

/** The server's answer to RCPT, such as `450 4.7.1 Greylisted`; undefined: it accepts the recipient. */
export type Judge = (recipient: string) => string | undefined

const plans = { postfix: planPostfix, exim: planExim }
export type MailServerKind = keyof typeof plans

export async function startMailServer(
  kind: MailServerKind,
  relayPort: number,
  judge: Judge,
): Promise<MailServer> {
  if (process.getuid?.() !== 0) throw new Error(`${kind} can only be started by root`)
  const folder = serverFolder(kind)
  // The server's own users can enter both.
  for (const each of [dirname(folder), folder]) chmodSync(each, 0o711)
  const { caFile, keyFile, certFile } = makeCertificate(folder)
  const [port, judgePort] = [await findFreePort(), await startJudge(judge)]
  const site = { folder, port, keyFile, certFile, relayPort, judgePort }
  const { command, logFile } = plans[kind](site)
  const startLog = join(folder, 'server.log')
  let server: ServerProcess | undefined
  const start = async () => {
    server = startServerProcess(command, startLog, 'SIGTERM')
    writeFileSync(join(folder, 'server.pid'), String(server.pid))
    if (!(await untilReady(server, () => isOpen(port))))
      throw new Error(`${kind} did not start:\n${readIfThere(startLog)}${readIfThere(logFile)}`)
  }
  const stop = async () => {
    await server?.stop()
    // Its children keep the port for a moment longer.
    await eventually(async () => !(await isOpen(port)))
  }
  releaseLater(stop)
  await start()
  return { port, caFile, start, stop, log: () => readIfThere(logFile) }
}

/** Both forms of questions: Postfix's policy service, and one line with the recipient from Exim. */
async function startJudge(judge: Judge): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    let asked = ''
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', (bytes) => {
      asked += bytes
      const policy = /^recipient=(.*)$[\s\S]*\n\n$/m.exec(asked)
      if (policy) {
        socket.write(`action=${judge(policy[1] ?? '') ?? 'DUNNO'}\n\n`)
        asked = ''
      } else if (/^\S+@\S+\n$/.test(asked)) socket.end(judge(asked.trim()) ?? '')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  releaseLater(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

function planPostfix({ folder, port, keyFile, certFile, relayPort, judgePort }: Site): Plan {
  const postfix = findProgram('postfix')
  const etc = join(folder, 'etc')
  for (const name of ['etc', 'queue', 'data']) mkdirSync(join(folder, name), { mode: 0o755 })
  execFileSync('chown', ['postfix', join(folder, 'data')])
  for (const name of ['postfix-files', 'dynamicmaps.cf']) {
    if (existsSync(`/etc/postfix/${name}`)) copyFileSync(`/etc/postfix/${name}`, join(etc, name))
  }
  const logFile = join(folder, 'mail.log')
  const settings = {
    compatibility_level: '3.6',
    queue_directory: join(folder, 'queue'),
    data_directory: join(folder, 'data'),
    maillog_file: logFile,
    maillog_file_prefixes: dirname(dirname(folder)),
    inet_interfaces: '127.0.0.1',
    inet_protocols: 'ipv4',
    myhostname: 'localhost.example.test',
    mydestination: '',
    alias_maps: '',
    alias_database: '',
    local_recipient_maps: '',
    relayhost: `[127.0.0.1]:${relayPort}`,
    mynetworks: '127.0.0.0/8',
    smtpd_relay_restrictions: 'permit_mynetworks, reject',
    smtpd_recipient_restrictions: `check_policy_service inet:127.0.0.1:${judgePort}`,
    smtpd_tls_security_level: 'may',
    smtpd_tls_cert_file: certFile,
    smtpd_tls_key_file: keyFile,
    smtp_tls_security_level: 'none',
    // A mail that the next server does not accept now is passed on soon.
    queue_run_delay: '2s',
    minimal_backoff_time: '2s',
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  writeFileSync(join(etc, 'main.cf'), `${lines.join('\n')}\n`)
  // Debian's services, none in a changed root, and the test's port.
  const services = readFileSync('/usr/share/postfix/master.cf.dist', 'utf8')
    .replace(/^smtp +inet .*$/m, `127.0.0.1:${port} inet n - n - - smtpd`)
    .replace(/^(\S+ +unix +\S+ +\S+ +)y/gm, '$1n')
  writeFileSync(join(etc, 'master.cf'), services)
  execFileSync(postfix, ['-c', etc, 'check'], { stdio: 'pipe' })
  // Not `postfix start-fg`: if it is ended, it leaves this process running.
  return { command: ['/usr/lib/postfix/sbin/master', '-c', etc, '-s'], logFile }
}

/** Debian's package can't be installed beside Postfix. So its files are unpacked, and its user is made. */
function planExim({ folder, port, keyFile, certFile, relayPort, judgePort }: Site): Plan {
  const run = (program: string, ...args: string[]) =>
    execFileSync(program, args, { cwd: folder, stdio: 'pipe' })
  run('apt-get', '-q', 'install', '-y', '--no-install-recommends', 'libidn12', 'libgnutls-dane0')
  run('apt-get', '-q', 'download', 'exim4-daemon-light')
  const [archive = ''] = readdirSync(folder).filter((name) => name.endsWith('.deb'))
  run('dpkg', '-x', archive, '.')
  const user = 'Debian-exim'
  if (!/^Debian-exim:/m.test(readFileSync('/etc/passwd', 'utf8')))
    run('useradd', '--system', '--no-create-home', '--shell', '/usr/sbin/nologin', user)
  mkdirSync(join(folder, 'spool'))
  mkdirSync(join(folder, 'log'))
  run('chown', user, 'spool', 'log', keyFile, certFile)
  const file = join(folder, 'exim.conf')
  writeFileSync(
    file,
    `primary_hostname = localhost.example.test
spool_directory = ${folder}/spool
log_file_path = ${folder}/log/%slog
pid_file_path = ${folder}/exim.pid
local_interfaces = 127.0.0.1
daemon_smtp_ports = ${port}
tls_advertise_hosts = *
tls_certificate = ${certFile}
tls_privatekey = ${keyFile}
keep_environment =
deliver_drop_privilege = true
smtp_accept_max_per_connection = 20
smtp_accept_queue_per_connection = 0
acl_smtp_rcpt = judge
begin acl
judge:
  defer set acl_m0 = \${readsocket{inet:127.0.0.1:${judgePort}}{$local_part@$domain\\n}{5s}{}{}}
        condition = \${if eq{$acl_m0}{}{no}{yes}}
        message = $acl_m0
  accept
begin routers
next:
  driver = manualroute
  transport = next
  route_list = * 127.0.0.1::${relayPort}
  self = send
begin transports
next:
  driver = smtp
  hosts_avoid_tls = *
  allow_localhost = true
begin retry
* * F,1h,2s
`,
  )
  return {
    command: [join(folder, 'usr/sbin/exim4'), '-C', file, '-bdf', '-q2s'],
    logFile: join(folder, 'log/mainlog'),
  }
}
