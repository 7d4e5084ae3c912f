/** Proxies in front of two API processes, each run from its file in deploy/. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { askPort, findFreePort, readIfThere } from '../../src/dev/server-process.ts'
import {
  findProgram,
  isOpen,
  makeCertificate,
  serverFolder,
  startDebianServer,
} from './debian-server.ts'

/** The address where an API process listens. */
export type Place = Record<'HOST' | 'PORT' | 'ADMIN_PORT', string>

/** Two addresses of the loopback network with the same ports, like two machines. */
export async function twoPlaces(): Promise<[Place, Place]> {
  const ports = { PORT: String(await findFreePort()), ADMIN_PORT: String(await findFreePort()) }
  return [
    { HOST: '127.0.0.11', ...ports },
    { HOST: '127.0.0.12', ...ports },
  ]
}

export interface Way {
  /** Where the callers send. */
  addresses: readonly string[]
  /** The variables of an API process, besides its ports. */
  env: Readonly<Record<string, string>>
  /** True when the proxy knows that both processes are healthy again. */
  isWhole: () => Promise<boolean>
  /** The proxy's log of errors. */
  log: () => string
  /** All that it logs, of requests and errors. */
  accessLog: () => string
}

const isReady = async ({ HOST, ADMIN_PORT }: Place) => {
  const headers = { connection: 'close' }
  return (await fetch(`http://${HOST}:${ADMIN_PORT}/readyz`, { headers })).ok
}

export const areReady = async (places: readonly Place[]) =>
  (await Promise.all(places.map(isReady))).every(Boolean)

/** A file of deploy/, with the addresses and certificates of this test in place of its examples. */
function sampleOf(file: string, replacements: readonly (readonly [string, string])[]): string {
  let text = readFileSync(join(import.meta.dirname, '../../deploy', file), 'utf8')
  for (const [from, to] of replacements) {
    if (!text.includes(from)) throw new Error(`deploy/${file} has no ${from}`)
    text = text.replaceAll(from, to)
  }
  return text
}

/** nginx from deploy/nginx/postern.conf. */
export async function openNginx([first, second]: readonly [Place, Place]): Promise<Way> {
  const folder = serverFolder('nginx')
  const { keyFile, certFile } = makeCertificate(folder)
  const port = await findFreePort()
  const sample = sampleOf('nginx/postern.conf', [
    ['listen 443', `listen 127.0.0.1:${port}`],
    ['/etc/ssl/CERTIFICATE.pem', certFile],
    ['/etc/ssl/KEY.pem', keyFile],
    ['/var/log/nginx/postern.log', join(folder, 'access.log')],
    ['127.0.0.1:3001', `${first.HOST}:${first.PORT}`],
    ['127.0.0.1:3002', `${second.HOST}:${second.PORT}`],
  ])
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
     events {} http {
     ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
     ${sample} }`,
  )
  const command = [
    findProgram('nginx'),
    '-p',
    folder,
    '-c',
    file,
    '-e',
    join(folder, 'error.log'),
  ] as const
  await startDebianServer(folder, command, () => isOpen(port))
  return {
    addresses: [`https://127.0.0.1:${port}`],
    env: { TRUST_PROXY_HOPS: '1' },
    isWhole: () => areReady([first, second]),
    // Errors of a process that is being replaced: the next one is tried.
    log: () => readIfThere(join(folder, 'error.log')).replace(/^.*\(111: .*\n/gm, ''),
    accessLog: () =>
      readIfThere(join(folder, 'access.log')) + readIfThere(join(folder, 'error.log')),
  }
}

/** HAProxy from deploy/haproxy/postern.cfg. */
export async function openHaproxy([first, second]: readonly [Place, Place]): Promise<Way> {
  const folder = serverFolder('haproxy')
  const { keyFile, certFile } = makeCertificate(folder)
  const pemFile = join(folder, 'both.pem')
  writeFileSync(pemFile, readFileSync(certFile, 'utf8') + readFileSync(keyFile, 'utf8'))
  const [port, statsPort] = [await findFreePort(), await findFreePort()]
  const sample = sampleOf('haproxy/postern.cfg', [
    ['bind :443', `bind 127.0.0.1:${port}`],
    ['/etc/haproxy/CERTIFICATE-AND-KEY.pem', pemFile],
    ['127.0.0.1:3001 port 13001', `${first.HOST}:${first.PORT} port ${first.ADMIN_PORT}`],
    ['127.0.0.1:3002 port 13002', `${second.HOST}:${second.PORT} port ${second.ADMIN_PORT}`],
  ])
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(
    file,
    `global\n  log stdout format raw local0\n  stats socket ipv4@127.0.0.1:${statsPort} level user\n${sample}`,
  )
  const command = [findProgram('haproxy'), '-db', '-f', file] as const
  await startDebianServer(folder, command, () => isOpen(port))
  const isUp = (stats: string, name: string) =>
    new RegExp(`^postern,${name},.*,UP,`, 'm').test(stats)
  return {
    addresses: [`https://127.0.0.1:${port}`],
    env: { TRUST_PROXY_HOPS: '1', DRAIN_SECONDS: '3' },
    async isWhole() {
      const stats = await askPort(statsPort, 'show stat\n')
      return isUp(stats, 'api1') && isUp(stats, 'api2')
    },
    log: () =>
      readIfThere(join(folder, 'server.log'))
        .match(/^.* 50\d .*$/gm)
        ?.join('\n') ?? '',
    accessLog: () => readIfThere(join(folder, 'server.log')),
  }
}

/** Caddy from deploy/caddy/Caddyfile, with a certificate of the test instead of Let's Encrypt's. */
export async function openCaddy([first, second]: readonly [Place, Place]): Promise<Way> {
  const folder = serverFolder('caddy')
  const { keyFile, certFile } = makeCertificate(folder)
  const port = await findFreePort()
  const sample = sampleOf('caddy/Caddyfile', [
    ['\n{\n', '\n{\n\tadmin off\n\tauto_https disable_redirects\n'],
    [
      'CODES.EXAMPLE.COM {',
      `https://127.0.0.1:${port} {\n\tbind 127.0.0.1\n\ttls ${certFile} ${keyFile}`,
    ],
    ['127.0.0.11:3000', `${first.HOST}:${first.PORT}`],
    ['127.0.0.12:3000', `${second.HOST}:${second.PORT}`],
    ['health_port 9100', `health_port ${first.ADMIN_PORT}`],
  ])
  const file = join(folder, 'Caddyfile')
  writeFileSync(file, sample)
  // Caddy stores its data in these folders.
  const own = [`XDG_DATA_HOME=${folder}`, `XDG_CONFIG_HOME=${folder}`]
  const command = [...own, findProgram('caddy'), 'run', '--adapter', 'caddyfile', '--config', file]
  await startDebianServer(folder, ['env', ...command], () => isOpen(port))
  const linesOf = (pattern: RegExp) =>
    readIfThere(join(folder, 'server.log'))
      .split('\n')
      .filter((line) => pattern.test(line))
  return {
    addresses: [`https://127.0.0.1:${port}`],
    env: { TRUST_PROXY_HOPS: '1', DRAIN_SECONDS: '3' },
    // Caddy logs each failed check, and the first one that succeeds again.
    isWhole: async () =>
      [first, second].every(({ HOST, ADMIN_PORT }) => {
        const checks = linesOf(/active/).filter((line) => line.includes(`"${HOST}:${ADMIN_PORT}"`))
        return checks.at(-1)?.includes('host is up') ?? true
      }),
    // A refused request is an error in its log of requests.
    log: () => linesOf(/"level":"error","ts":[\d.]+,"logger":"(?!http\.log\.access)/).join('\n'),
    accessLog: () => readIfThere(join(folder, 'server.log')),
  }
}
