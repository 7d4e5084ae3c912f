/** docker-compose.yml, the Dockerfile and the manifests, compared with facts, without a container engine. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DCLinter } from 'dclint'
import { expect, inject, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { parseDurationMs } from '../../src/base/durations.ts'
import { stopWithinMs } from '../../src/base/stop-on-signals.ts'
import { environmentNames } from '../../src/config/environment.ts'
import { findOnPath } from '../../src/dev/find-or-install.ts'

const pathOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const read = (path: string) => readFileSync(pathOf(path), 'utf8')

interface Service {
  image: string
  build?: string
  pull_policy?: string
  command?: string[]
  restart?: string
  stop_grace_period?: string
  environment?: Record<string, string>
  env_file?: { path: string; required: boolean }[]
  ports?: string[]
  volumes?: string[]
  networks?: string[]
  healthcheck?: { test?: string[]; disable?: boolean }
  mem_limit?: string
  logging?: { driver: string; options: Record<string, string> }
  depends_on?: Record<string, { condition: string }>
}

const composeText = read('docker-compose.yml')
const compose = parse(composeText, { merge: true }) as {
  services: Record<string, Service>
  networks: Record<string, { internal?: boolean }>
}
const services = Object.entries(compose.services).map(([name, service]) => ({ name, ...service }))
const service = (name: string) => compose.services[name] as Service
const dockerfile = read('Dockerfile')
const policyFile = read('deploy/postern.yaml')

/** Variables of the images, not of Postern. */
const othersNames = ['POSTGRES_PASSWORD', 'REDIS_PASSWORD']
/** Read by deploy/postern.yaml as `${NAME}`. */
const policyFileNames = [...policyFile.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name as string)

function schemaErrors(file: string): string[] {
  const linter = new DCLinter({ rules: {}, quiet: true, debug: false, exclude: [] })
  // Its own types name files without their extension, which Node's module resolution can't follow.
  const results = linter.lintFiles([file], false) as {
    messages: { rule: string; message: string }[]
  }[]
  return results
    .flatMap(({ messages }) => messages.filter(({ rule }) => rule === 'invalid-schema'))
    .map(({ message }) => message)
}

test('docker-compose.yml is valid by the Compose specification, and the check would report a fault', () => {
  expect(schemaErrors(pathOf('docker-compose.yml'))).toEqual([])
  const folder = mkdtempSync(join(tmpdir(), 'postern-compose-'))
  try {
    const broken = join(folder, 'docker-compose.yml')
    writeFileSync(broken, composeText.replace('    healthcheck:', '    helthcheck:'))
    expect(schemaErrors(broken)).toHaveLength(1)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test.each(services)('$name: its image is pinned to a version', ({ image }) => {
  expect(image).toMatch(/^[a-z/]+:v?\d+\.\d+(\.\d+)?(-alpine)?$/)
})

test.each(services)('$name: has a health check', ({ name, image, healthcheck }) => {
  if (name === 'migrate') expect(healthcheck?.disable).toBe(true)
  else if (image.startsWith('postern:'))
    expect(dockerfile).toMatch(/^HEALTHCHECK .*ADMIN_PORT.*\/livez/m)
  else expect(healthcheck?.test?.length).toBeGreaterThan(0)
})

test.each(services)(
  '$name: publishes on loopback only, and never an admin port, PostgreSQL or Redis',
  (each) => {
    for (const published of each.ports ?? []) {
      expect(published).toMatch(/^127\.0\.0\.1:/)
      expect(published).not.toMatch(/:(9100|5432|6379)$/)
    }
    if (['worker', 'postgres', 'redis', 'migrate'].includes(each.name))
      expect(each.ports).toBe(undefined)
  },
)

test('PostgreSQL and Redis stand on a network that only Postern reaches', () => {
  expect(compose.networks.data?.internal).toBe(true)
  const onData = services
    .filter(({ networks }) => networks?.includes('data'))
    .map(({ name }) => name)
  expect(onData.sort()).toEqual(['api', 'migrate', 'postgres', 'redis', 'worker'])
  expect(service('postgres').networks).toEqual(['data'])
  expect(service('redis').networks).toEqual(['data'])
})

const megabytesOf = (size: string) => {
  const [, number = '', unit = ''] = /^(\d+)(m|g|mb)$/.exec(size) ?? []
  return Number(number) * (unit === 'g' ? 1024 : 1)
}

test.each(services)('$name: its memory and its logs have a limit', ({ mem_limit, logging }) => {
  expect(megabytesOf(mem_limit ?? '')).toBeGreaterThan(0)
  expect(logging).toEqual({ driver: 'local', options: { 'max-size': '10m', 'max-file': '5' } })
})

test.each(['api', 'worker'])('%s: Compose and Kubernetes give it the same memory', (name) => {
  const [, mebibytes] =
    /limits: \{ memory: (\d+)Mi \}/.exec(read(`deploy/kubernetes/${name}.yaml`)) ?? []
  expect(megabytesOf(service(name).mem_limit ?? '')).toBe(Number(mebibytes))
})

test('Redis is full before its container is, and every client has its password', () => {
  const { mem_limit = '', command = [], environment } = service('redis')
  const flag = (name: string) => new RegExp(`--${name} (\\S+)`).exec(command.join(' '))?.[1] ?? ''
  expect(megabytesOf(flag('maxmemory'))).toBeGreaterThan(0)
  expect(megabytesOf(flag('maxmemory'))).toBeLessThanOrEqual((megabytesOf(mem_limit) * 2) / 3)
  // Not among the arguments, which every user of the machine can read.
  expect(flag('requirepass')).toBe('')
  expect(command.at(-1)).toMatch(/ <<END\nrequirepass \$\$REDISCLI_AUTH\nEND\n$/)
  expect(environment?.REDISCLI_AUTH).toMatch(/^\$\{REDIS_PASSWORD:\?./)
  for (const name of ['api', 'worker'])
    expect(service(name).environment?.REDIS_URL).toMatch(
      /^redis:\/\/:\$\{REDIS_PASSWORD\}@redis:6379$/,
    )
})

const redisServer = findOnPath('redis-server')

test.skipIf(!redisServer)(
  'Redis starts by its command, with its password, although its image adds options (skipped without redis-server)',
  async () => {
    const folder = mkdtempSync(join(inject('runFolder'), 'redis-'))
    // The image of Redis 8 adds `--loadmodule` for each of its modules.
    const added = '--port 0 --unixsocket socket --dir . --loglevel notice'
    const entrypoint = `#!/bin/sh\nshift\nexec "${redisServer}" "$@" ${added}\n`
    writeFileSync(join(folder, 'docker-entrypoint.sh'), entrypoint, { mode: 0o755 })
    const [program = '', ...args] = service('redis').command ?? []
    const redis = spawn(
      program,
      args.map((each) => each.replaceAll('$$', '$')),
      {
        cwd: folder,
        env: { PATH: `${folder}:${process.env.PATH}`, REDISCLI_AUTH: 'shop4711' },
        timeout: 20_000,
      },
    )
    try {
      let output = ''
      for await (const chunk of redis.stdout) {
        output += chunk
        if (/ready to accept connections/i.test(output)) break
      }
      expect(output).toMatch(/ready to accept connections/i)
      const ask = (env: object) =>
        spawnSync('redis-cli', ['-s', join(folder, 'socket'), 'CONFIG', 'GET', 'appendonly'], {
          encoding: 'utf8',
          env: { PATH: process.env.PATH, ...env },
        }).stdout
      expect(ask({})).toContain('NOAUTH')
      expect(ask({ REDISCLI_AUTH: 'shop4711' })).toBe('appendonly\nyes\n')
    } finally {
      redis.kill('SIGKILL')
      if (redis.exitCode === null && redis.signalCode === null) await once(redis, 'exit')
    }
  },
)

test('Redis writes its data to disk and never evicts', () => {
  const flags = service('redis').command?.join(' ')
  expect(flags).toContain('--appendonly yes')
  expect(flags).toContain('--appendfsync everysec')
  expect(flags).toContain('--maxmemory-policy noeviction')
  expect(service('redis').volumes).toContain('redis:/data')
})

test('migrations run once, and both processes wait for them and for Redis', () => {
  expect(service('migrate').restart).toMatch(/^on-failure:\d+$/)
  expect(service('migrate').depends_on?.postgres?.condition).toBe('service_healthy')
  for (const name of ['api', 'worker']) {
    expect(service(name).depends_on).toEqual({
      migrate: { condition: 'service_completed_successfully' },
      redis: { condition: 'service_healthy' },
    })
  }
})

test('the image is built once, by the service that all others of it wait for, and anew after a git pull', () => {
  const ofOurs = services.filter(({ image }) => image.startsWith('postern:'))
  expect(ofOurs.map(({ name }) => name).sort()).toEqual(['api', 'migrate', 'worker'])
  for (const { name, build, pull_policy } of ofOurs) {
    expect({ build, pull_policy }).toEqual(
      name === 'migrate'
        ? { build: '.', pull_policy: 'build' }
        : { build: undefined, pull_policy: 'never' },
    )
  }
})

test('the grace period of Compose and Kubernetes is longer than a process gives itself', () => {
  for (const name of ['api', 'worker']) {
    const graceMs = parseDurationMs(service(name).stop_grace_period ?? '')
    expect(graceMs).toBeGreaterThanOrEqual(stopWithinMs + 5_000)
  }
  for (const spec of podSpecs()) {
    if (!spec.containers[0]?.readinessProbe) continue
    const drain = spec.containers[0].env?.find(({ name }) => name === 'DRAIN_SECONDS')
    const drainMs = Number(drain?.value ?? 0) * 1_000
    const graceMs = spec.terminationGracePeriodSeconds * 1_000
    expect(graceMs).toBeGreaterThanOrEqual(stopWithinMs + drainMs + 5_000)
  }
})

const units = ['postern-api@.service', 'postern-worker@.service']
const canAnalyze = findOnPath('systemd-analyze') !== undefined

test.skipIf(!canAnalyze).each(units)(
  '%s: systemd rates its exposure below 3 of 10 (skipped without systemd-analyze)',
  (unit) => {
    const rate = () =>
      spawnSync(
        'systemd-analyze',
        ['security', '--offline=true', '--threshold=30', pathOf(`deploy/systemd/${unit}`)],
        { encoding: 'utf8' },
      )
    const { status, stdout, stderr } = rate()
    expect(status, stderr).toBe(0)
    expect(stdout).toContain('Overall exposure level')
  },
)

test.skipIf(!canAnalyze).each(units)(
  '%s: systemd understands every line of an instance (skipped without systemd-analyze)',
  (unit) => {
    // As written, but with the folder of an installation that exists here.
    const folder = mkdtempSync(join(inject('runFolder'), 'units-'))
    mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
    symlinkSync(pathOf('bin/postern'), join(folder, 'node_modules/.bin/postern'))
    const text = read(`deploy/systemd/${unit}`).replaceAll('/opt/postern', folder)
    const file = join(folder, unit.replace('@', '@1'))
    writeFileSync(file, text)
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], {
      encoding: 'utf8',
    })
    expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: '' })
  },
)

test.each(units)('%s: failures in a row do not stop it for good', (unit) => {
  // systemd.unit: otherwise the fifth start within ten seconds is the last.
  expect(read(`deploy/systemd/${unit}`)).toMatch(/^StartLimitIntervalSec=0$/m)
})

test.each(units)('%s: nothing wins over the ports of its instances', (unit) => {
  // systemd.exec: settings of an EnvironmentFile override those of Environment.
  expect(read(`deploy/systemd/${unit}`)).not.toMatch(/^EnvironmentFile=/m)
})

test.each(units)(
  '%s: its time to stop is longer than a process gives itself, HAProxy’s drain included',
  (unit) => {
    const drainSeconds = Number(/DRAIN_SECONDS=(\d+)/.exec(read('deploy/haproxy/postern.cfg'))?.[1])
    const stopSeconds = Number(/^TimeoutStopSec=(\d+)$/m.exec(read(`deploy/systemd/${unit}`))?.[1])
    expect(stopSeconds * 1_000).toBeGreaterThanOrEqual(stopWithinMs + drainSeconds * 1_000 + 5_000)
  },
)

test('every variable that Compose passes on or reads is one that Postern or an image knows', () => {
  const known = [...environmentNames, ...policyFileNames]
  for (const name of ['api', 'worker', 'migrate']) {
    for (const variable of Object.keys(service(name).environment ?? {})) {
      expect(known).toContain(variable)
    }
  }
  for (const [, name] of composeText.matchAll(/\$\{(\w+)/g)) {
    expect([...known, ...othersNames]).toContain(name)
  }
})

test.each(['SECRET', 'POSTGRES_PASSWORD', 'REDIS_PASSWORD'])(
  'a missing %s stops Compose instead of starting with a known one',
  (name) => {
    const given = [...composeText.matchAll(new RegExp(`\\$\\{${name}(?!_)([^}]*)\\}`, 'g'))]
    expect(given.some(([, rest]) => /^:\?./.test(rest ?? ''))).toBe(true)
    for (const [, rest] of given) expect(rest).not.toMatch(/^:?-/)
  },
)

test('what .env has reaches the processes of Postern, but for the ports of the machine', () => {
  for (const name of ['api', 'worker']) {
    expect(service(name).env_file).toEqual([{ path: '.env', required: false }])
    expect(service(name).environment).toMatchObject({ PORT: '3000', ADMIN_PORT: '9100' })
    expect(service(name).environment?.CA_FILE).toContain('CA_FILE')
  }
  expect(service('api').environment?.DRAIN_SECONDS).toContain('DRAIN_SECONDS')
})

test('migrations too find the file of CA_FILE: every process reads it before it connects', () => {
  for (const { name, image, env_file, volumes } of services) {
    if (!image.startsWith('postern:')) continue
    expect({ name, env_file, volumes }).toMatchObject({ env_file: [{ path: '.env' }] })
    expect({ name, volumes }).toEqual({ name, volumes: ['./deploy:/app/deploy:ro'] })
  }
  const migrate = podSpecs().find(({ containers }) => containers[0]?.command?.includes('migrate'))
  expect(migrate?.containers[0]?.env?.map(({ name }) => name)).toEqual(['DATABASE_URL', 'CA_FILE'])
})

test('the image is small, not root, and holds no development dependency', () => {
  expect(dockerfile).toMatch(/^FROM node:24\.\d+\.\d+-slim AS base$/m)
  expect(dockerfile).toMatch(/npm ci --ignore-scripts --omit=dev --omit=optional --omit=peer$/m)
  // test/contract/package.slow.test.ts runs its lines.
  const lastStage = dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))
  expect(lastStage).not.toContain('npm ')
  expect(lastStage).toMatch(/^USER [1-9]/m)
  const allowed =
    read('.dockerignore')
      .match(/^!(.*)$/gm)
      ?.map((line) => line.slice(1)) ?? []
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, list = '']) =>
    list.split(' '),
  )
  for (const source of copied) expect(['.', ...allowed]).toContain(source)
})

test('the image runs the same Node as npm does', () => {
  const image = /^FROM node:(\d+)\./m.exec(dockerfile)?.[1]
  // Not a development dependency: a production install on a machine with an older Node needs it too.
  const { dependencies } = JSON.parse(read('package.json'))
  expect(dependencies.node).toMatch(new RegExp(`^\\^${image}\\.`))
})

interface Scraped {
  scrape_configs: {
    job_name: string
    dns_sd_configs?: { names: string[]; port: number }[]
    static_configs?: { targets: string[] }[]
  }[]
  alerting?: { alertmanagers: { static_configs: { targets: string[] }[] }[] }
}
const scrapedBy = (file: string) => parse(read(`deploy/prometheus/${file}`)) as Scraped

test('Compose, Kubernetes and systemd scrape under the one job that the alerts name', () => {
  const named = [...read('deploy/prometheus/alerts.yml').matchAll(/job="([^"]+)"/g)]
  expect(named.length).toBeGreaterThan(0)
  for (const file of ['prometheus.yml', 'kubernetes.yml', 'systemd.yml']) {
    const jobs = scrapedBy(file).scrape_configs.map(({ job_name }) => job_name)
    for (const [, job] of named) expect(jobs).toEqual([job])
  }
})

test('Prometheus of Compose scrapes api and worker on their admin port, and calls Alertmanager', () => {
  const { scrape_configs, alerting } = scrapedBy('prometheus.yml')
  const found = scrape_configs.flatMap(({ dns_sd_configs = [] }) => dns_sd_configs)
  expect(found).toMatchObject([{ names: ['api', 'worker'], port: 9100 }])
  const targets = alerting?.alertmanagers.flatMap((each) =>
    each.static_configs.flatMap((config) => config.targets),
  )
  expect(targets).toEqual(['alertmanager:9093'])
  expect(service('alertmanager').networks).toEqual(service('prometheus').networks)
})

test('Prometheus beside systemd scrapes the admin port of every process that the page starts', () => {
  const [, line = ''] = /^systemctl enable --now (.+)$/m.exec(read('docs/guides/go-live.md')) ?? []
  const ports = line.split(' ').map((unit) => {
    const [template, instance = ''] = unit.split('@')
    const [, port = ''] =
      /^Environment=.*ADMIN_PORT=(\S+)$/m.exec(read(`deploy/systemd/${template}@.service`)) ?? []
    return port.replace('%i', instance)
  })
  const { scrape_configs } = scrapedBy('systemd.yml')
  const targets = scrape_configs.flatMap(({ static_configs = [] }) =>
    static_configs.flatMap((each) => each.targets),
  )
  expect(targets).toEqual(ports.map((port) => `127.0.0.1:${port}`))
})

test('Alertmanager has one receiver that everything goes to, and its mail server is a service', () => {
  const { route, receivers } = parse(read('deploy/prometheus/alertmanager.yml')) as {
    route: { receiver: string; routes: { receiver?: string }[] }
    receivers: { name: string; email_configs: { smarthost: string }[] }[]
  }
  expect(receivers.map(({ name }) => name)).toEqual([route.receiver])
  for (const each of route.routes) expect(each.receiver ?? route.receiver).toBe(route.receiver)
  const [host = '', port] = receivers[0]?.email_configs[0]?.smarthost.split(':') ?? []
  expect(service(host).networks).toEqual(service('alertmanager').networks)
  expect(port).toBe('1025')
})

interface Container {
  command?: string[]
  env?: { name: string; value?: string }[]
  ports?: { name: string; containerPort: number }[]
  readinessProbe?: { httpGet: { path: string; port: string } }
  livenessProbe?: { httpGet: { path: string; port: string } }
  securityContext?: { readOnlyRootFilesystem: boolean }
}

interface PodSpec {
  terminationGracePeriodSeconds: number
  securityContext?: { runAsNonRoot: boolean }
  containers: Container[]
}

function manifests() {
  const { resources } = parse(read('deploy/kubernetes/kustomization.yaml')) as {
    resources: string[]
  }
  return resources.flatMap((file) =>
    parseAllDocuments(read(`deploy/kubernetes/${file}`)).map((document) => {
      expect(document.errors).toEqual([])
      return document.toJS() as { kind: string; spec: { template?: { spec: PodSpec } } }
    }),
  )
}

function podSpecs(): PodSpec[] {
  const specs = manifests().flatMap(({ spec }) => (spec.template ? [spec.template.spec] : []))
  expect(specs).toHaveLength(3)
  return specs
}

test('the pods of Kubernetes are probed on their admin port, are not root and write nothing', () => {
  for (const { containers, securityContext } of podSpecs()) {
    expect(securityContext?.runAsNonRoot).toBe(true)
    for (const { command, ports, readinessProbe, livenessProbe, securityContext } of containers) {
      expect(securityContext?.readOnlyRootFilesystem).toBe(true)
      if (command?.at(-1) === 'migrate') continue
      expect(ports).toContainEqual({ name: 'admin', containerPort: 9100 })
      const path = command?.at(-1) === 'api' ? '/usefulz' : '/readyz'
      expect(readinessProbe?.httpGet).toEqual({ path, port: 'admin' })
      expect(livenessProbe?.httpGet).toEqual({ path: '/livez', port: 'admin' })
    }
  }
})
