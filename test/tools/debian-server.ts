/** Servers that no npm package contains, run on loopback with a configuration of the test. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { inject } from 'vitest'
import { findOrInstall } from '../../src/dev/find-or-install.ts'
import { readIfThere, startServerProcess, untilReady } from '../../src/dev/server-process.ts'
import { releaseLater } from './release.ts'

/** The path of the program. Installs Debian's package if the program is missing; throws on other systems. */
export function findProgram(name: string, debianPackage = name): string {
  return findOrInstall(
    [name],
    debianPackage,
    `No ${name} found: install it (Debian, Ubuntu: apt-get install ${debianPackage})`,
  )
}

/** A folder for its configuration and data. If a killed run left a server in it, the next run ends that server. */
export const serverFolder = (name: string) => mkdtempSync(join(inject('runFolder'), `${name}-`))

/** `command` names `folder`, so that a later run recognises the process. It is ended after the test. */
export async function startDebianServer(
  folder: string,
  command: readonly [string, ...string[]],
  isReady: () => Promise<boolean>,
): Promise<void> {
  const logFile = join(folder, 'server.log')
  const server = startServerProcess(command, logFile, 'SIGTERM')
  writeFileSync(join(folder, 'server.pid'), String(server.pid))
  // If it were killed, its children would go on.
  releaseLater(() => server.stop())
  if (!(await untilReady(server, isReady)))
    throw new Error(`${command[0]} did not start; its log:\n${readIfThere(logFile).slice(-2_000)}`)
}

/** A key and its certificate for `localhost` and 127.0.0.1, signed by a new authority. */
export function makeCertificate(folder: string): {
  caFile: string
  keyFile: string
  certFile: string
} {
  const [caKey, caFile] = [join(folder, 'ca.key'), join(folder, 'ca.pem')]
  const [keyFile, certFile] = [join(folder, 'server.key'), join(folder, 'server.pem')]
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' })
  const newKey = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
  ]
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    caKey,
    '-out',
    caFile,
    '-subj',
    '/CN=A private authority',
  )
  openssl(
    ...['req', '-x509', ...newKey, '-keyout', keyFile, '-out', certFile, '-subj', '/CN=localhost'],
    ...['-CA', caFile, '-CAkey', caKey, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
    ...['-addext', 'basicConstraints=critical,CA:FALSE'],
  )
  return { caFile, keyFile, certFile }
}

/** True if this loopback port accepts connections. */
export function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}

/** For servers that refuse to run as root, of which only root can read the folder. */
export const asNobodyWhoReads = (command: readonly string[]): [string, ...string[]] => [
  'setpriv',
  '--reuid=65534',
  '--regid=65534',
  '--clear-groups',
  '--inh-caps=+dac_read_search',
  '--ambient-caps=+dac_read_search',
  ...command,
]
