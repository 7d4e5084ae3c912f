/** API processes replaced one after the other, under callers that keep their connections. */
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, type ClientRequest, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { askPort, findFreePort, readIfThere } from '../../src/dev/server-process.ts'
import {
  findProgram,
  isOpen,
  makeCertificate,
  serverFolder,
  startDebianServer,
} from '../tools/debian-server.ts'
import { type Fleet, fleetKey, freshPhone, startFleet } from '../tools/fleet.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import type { Fault, Lab } from './fault.ts'

const callers = 8
/** Between two sends of a caller; all of them make 80 a second. */
const pauseMs = 100
const maxTries = 10

/** What came of the sends of all callers. */
interface Tally {
  accepted: number
  /** Every other outcome: a status, or the error of a connection that broke. */
  others: { to: string; outcome: string }[]
}

/** Sends one after the other on a kept connection. Where one address refuses to connect, the next one is asked. */
async function call(addresses: readonly string[], tally: Tally, isOver: () => boolean) {
  const isTls = addresses[0]?.startsWith('https:')
  const agent = isTls
    ? new TlsAgent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
    : new Agent({ keepAlive: true, maxSockets: 1 })
  releaseLater(() => agent.destroy())
  let at = 0
  while (!isOver()) {
    const to = freshPhone()
    let outcome = ''
    for (let tries = 0; tries < maxTries; tries++) {
      outcome = await sendOnce(`${addresses[at % addresses.length]}/v1/captchas`, agent, to)
      if (outcome === 'ECONNREFUSED') at += 1
      // A busy machine; had it taken the quota of this number, the next try would be refused.
      else if (outcome !== 'unavailable') break
    }
    if (outcome === '202') tally.accepted += 1
    else tally.others.push({ to, outcome })
    await sleep(pauseMs)
  }
  agent.destroy()
}

function sendOnce(url: string, agent: Agent, to: string): Promise<string> {
  const body = JSON.stringify({ channel: 'sms', to })
  const headers = {
    authorization: `Bearer ${fleetKey}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  }
  return new Promise((resolve) => {
    const send = url.startsWith('https:') ? tlsRequest : request
    const outgoing: ClientRequest = send(url, { agent, method: 'POST', headers })
    outgoing.once('error', ({ code, message }: NodeJS.ErrnoException) => resolve(code ?? message))
    outgoing.once('response', (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.once('error', ({ message }) => resolve(message))
      response.once('end', () => {
        const isOurs = response.statusCode === 503 && text.includes('"unavailable"')
        resolve(isOurs ? 'unavailable' : String(response.statusCode))
      })
    })
    outgoing.end(body)
  })
}

type Ports = Record<'PORT' | 'ADMIN_PORT', string>

interface Way {
  /** Where the callers send. */
  addresses: readonly string[]
  /** Beside its ports, of an API process. */
  env: Readonly<Record<string, string>>
  /** Whether both processes are known again to what stands before them. */
  isWhole: () => Promise<boolean>
  /** What the proxy has to say about errors. */
  log: () => string
}

/** Replaces two processes in turn, each by one at the same address, and counts what the callers met. */
async function roll(
  lab: Lab,
  restarts: number,
  openWay: (ports: readonly Ports[]) => Promise<Way>,
): Promise<void> {
  const fleet = await startFleet({ apis: 0, workers: 0 })
  const ports: Ports[] = []
  for (let count = 0; count < 2; count++) {
    ports.push({ PORT: String(await findFreePort()), ADMIN_PORT: String(await findFreePort()) })
  }
  const way = await openWay(ports)
  const startAt = (place: number) =>
    fleet.startApi({ env: { ...way.env, ...ports[place] } as Record<string, string> })
  const running = await Promise.all(ports.map((_, place) => startAt(place)))
  await eventually(way.isWhole, { withinMs: 20_000, everyMs: 100 })

  const tally: Tally = { accepted: 0, others: [] }
  let isOver = false
  const calling = Promise.all(
    Array.from({ length: callers }, (_, caller) => {
      const first = caller % way.addresses.length
      const turned = [...way.addresses.slice(first), ...way.addresses.slice(0, first)]
      return call(turned, tally, () => isOver)
    }),
  )
  try {
    for (let count = 0; count < restarts; count++) {
      const place = count % running.length
      await sleep(lab.between(300, 600))
      expect(await running[place]?.terminate()).toBe(0)
      running[place] = await startAt(place)
      await eventually(way.isWhole, { withinMs: 20_000, everyMs: 100 })
    }
  } finally {
    isOver = true
    await calling
  }
  expect(tally.others, way.log()).toEqual([])
  expect(tally.accepted).toBeGreaterThan(restarts * 10)
  await expectNothingLost(fleet, tally)
}

/** Nothing was taken for a caller that heard of no acceptance. */
async function expectNothingLost(fleet: Fleet, { accepted }: Tally): Promise<void> {
  // A row whose 503 was said before its commit is closed again.
  const counted =
    "SELECT count(*)::int AS count FROM notice WHERE error IS DISTINCT FROM 'abandoned'"
  const [rows] = await fleet.query<{ count: number }>(counted)
  expect(rows?.count).toBe(accepted)
}

const isReady = async ({ ADMIN_PORT }: Ports) => {
  const headers = { connection: 'close' }
  return (await fetch(`http://127.0.0.1:${ADMIN_PORT}/readyz`, { headers })).ok
}

const areReady = async (ports: readonly Ports[]) =>
  (await Promise.all(ports.map(isReady))).every(Boolean)

/** A file of deploy/, with the addresses and certificates of this test in the place of its examples. */
function sampleOf(file: string, replacements: readonly (readonly [string, string])[]): string {
  let text = readFileSync(join(import.meta.dirname, '../../deploy', file), 'utf8')
  for (const [from, to] of replacements) {
    if (!text.includes(from)) throw new Error(`deploy/${file} has no ${from}`)
    text = text.replaceAll(from, to)
  }
  return text
}

/** nginx from deploy/nginx/postern.conf. */
async function openNginx(ports: readonly Ports[]): Promise<Way> {
  const folder = serverFolder('nginx')
  const { keyFile, certFile } = makeCertificate(folder)
  const port = await findFreePort()
  const sample = sampleOf('nginx/postern.conf', [
    ['listen 443', `listen 127.0.0.1:${port}`],
    ['/etc/ssl/CERTIFICATE.pem', certFile],
    ['/etc/ssl/KEY.pem', keyFile],
    ['127.0.0.1:3001', `127.0.0.1:${ports[0]?.PORT}`],
    ['127.0.0.1:3002', `127.0.0.1:${ports[1]?.PORT}`],
  ])
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/error.log;
     events {} http { access_log off;
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
    isWhole: () => areReady(ports),
    // Of a process that is being replaced; the next one is tried.
    log: () => readIfThere(join(folder, 'error.log')).replace(/^.*\(111: .*\n/gm, ''),
  }
}

/** HAProxy from deploy/haproxy/postern.cfg. */
async function openHaproxy(ports: readonly Ports[]): Promise<Way> {
  const folder = serverFolder('haproxy')
  const { keyFile, certFile } = makeCertificate(folder)
  const pemFile = join(folder, 'both.pem')
  writeFileSync(pemFile, readFileSync(certFile, 'utf8') + readFileSync(keyFile, 'utf8'))
  const [port, statsPort] = [await findFreePort(), await findFreePort()]
  const sample = sampleOf('haproxy/postern.cfg', [
    ['bind :443', `bind 127.0.0.1:${port}`],
    ['/etc/haproxy/CERTIFICATE-AND-KEY.pem', pemFile],
    ['127.0.0.1:3001 port 13001', `127.0.0.1:${ports[0]?.PORT} port ${ports[0]?.ADMIN_PORT}`],
    ['127.0.0.1:3002 port 13002', `127.0.0.1:${ports[1]?.PORT} port ${ports[1]?.ADMIN_PORT}`],
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
  }
}

const i34: Fault = {
  id: 'I34',
  breaks: 'API processes replaced in turn, under callers that keep their connections',
  holds: 'every send is accepted; no connection is reset and no quota lost',
  proves: 'I13, I34',
  async prove(lab) {
    await roll(lab, lab.length(2, 10), async (ports) => ({
      addresses: ports.map(({ PORT }) => `http://127.0.0.1:${PORT}`),
      env: {},
      isWhole: () => areReady(ports),
      log: () => '',
    }))
    return undefined
  },
}

const f39: Fault = {
  id: 'F39',
  breaks: 'the same behind nginx and behind HAProxy, each as in deploy/',
  holds: 'every send is accepted, none is a 502',
  proves: 'I34',
  async prove(lab) {
    const restarts = lab.length(1, 10)
    await Promise.all([roll(lab, restarts, openNginx), roll(lab, restarts, openHaproxy)])
    return undefined
  },
}

export const rollingFaults: readonly Fault[] = [i34, f39]
