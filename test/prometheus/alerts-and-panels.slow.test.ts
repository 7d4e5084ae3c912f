/**
 * Alerts and panels compared with the metrics of real processes: an API and a worker, scraped from their first moment
 * by a real Prometheus, under a load that changes every metric.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { eventTypes } from '../../src/base/event-types.ts'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'
import { unsentReasons } from '../../src/notice/states.ts'
import { testDatabase } from '../tools/database.ts'
import { startFarEnd } from '../tools/far-end.ts'
import { clientOf, processEnv } from '../tools/postern.ts'
import { startProcess } from '../tools/processes.ts'
import { promtool, type Sample, startPrometheus } from '../tools/prometheus.ts'
import { testRedis } from '../tools/redis.ts'
import { eventually } from '../tools/wait.ts'

const pathOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const read = (path: string) => readFileSync(pathOf(path), 'utf8')

interface Target {
  readonly title: string
  readonly expr: string
}

const { groups } = parse(read('deploy/prometheus/alerts.yml')) as {
  groups: { rules: { alert?: string; record?: string; expr: string }[] }[]
}
const alerts: Target[] = groups.flatMap(({ rules }) =>
  rules.map(({ alert, record, expr }) => ({ title: alert ?? (record as string), expr })),
)
const { panels } = JSON.parse(read('deploy/grafana/dashboards/postern.json')) as {
  panels: { title: string; targets?: { expr: string; legendFormat: string }[] }[]
}
/** Like Grafana with the process variable at All. The load ends within minutes, on any machine. */
const queries: Target[] = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr, legendFormat }) => ({
    title: `${title}: ${legendFormat}`,
    expr: expr.replaceAll('$process', '.*').replaceAll('$__rate_interval', '10m'),
  })),
)

const farEnd = await startFarEnd()
const secret = 'a secret both sides know'
const policyFile = {
  code: { triesPerCode: 3 },
  policies: {
    captcha: [
      { name: 'recipient', key: '{channel}:{to}', fixed: '1 per 1h' },
      { name: 'trial', key: '{app}', fixed: '1 per 1h', mode: 'observe' },
    ],
    notice: [],
    check: [{ name: 'guesses', key: '{to}', lockout: { limit: 3, window: '5m', lock: '15m' } }],
    login: [{ name: 'tries', key: '{subject}', lockout: { limit: 3, window: '5m', lock: '15m' } }],
  },
  providers: { carrier: { kind: 'webhook', url: farEnd.url, secret }, post: { kind: 'sandbox' } },
  routes: { sms: [{ use: ['carrier'] }], email: [{ use: ['post'] }] },
  // Nothing listens there, so events stay.
  events: { url: 'http://127.0.0.1:9/', secret },
}
const redis = await testRedis()
const database = await testDatabase()
const env = processEnv({ redis, database, policyFile })
const api = await startProcess('api', { env })
const worker = await startProcess('worker', { env })
const { post, get, codeFor } = clientOf(api.url, env.BOOTSTRAP_SECRET_KEY as string)

const scrape = async (process: { adminUrl: string }) => parseScrape(await textOf(process))
const first = { api: await scrape(api), worker: await scrape(worker) }

const prometheus = await startPrometheus({
  global: { scrape_interval: '1s', scrape_timeout: '1s' },
  scrape_configs: [
    {
      job_name: 'postern',
      static_configs: [{ targets: [api, worker].map(({ adminUrl }) => new URL(adminUrl).host) }],
    },
  ],
})
await eventually(
  async () => (await prometheus.query('count_over_time(postern_ready[10m]) > 1')).length === 2,
  { withinMs: 60_000 },
)
const wrongGuesses = 132
await load()
const last = { api: await scrape(api), worker: await scrape(worker) }
await eventually(
  async () =>
    (await prometheus.query('max_over_time(postern_receipts_total{result="forged"}[10m]) == 1'))
      .length === 1,
)

test.each(
  combinations({
    postern_http_requests_total: [
      { route: ['/v1/captchas'], method: ['POST'], status: ['202', '401', '429', '500', '503'] },
      { route: ['unknown'], method: ['GET', 'POST', 'other'], status: ['404'] },
    ],
    postern_accepted_total: [{ kind: ['captcha', 'notice'], channel: ['sms', 'email'] }],
    postern_rejected_total: rulesOf(policyFile.policies),
    postern_observed_total: rulesOf(policyFile.policies),
    postern_checks_total: [{ result: ['passed', 'mismatch', 'gone', 'refused'] }],
    postern_refusal_duration_seconds_count: [{}],
    postern_http_request_duration_seconds_count: [{ route: ['/v1/captchas/check'] }],
    postern_receipts_total: [
      { provider: ['carrier', 'post'], result: ['delivered', 'failed', 'unmatched', 'forged'] },
    ],
  }),
)('API, first scrape: $name $labels stands at 0 (I28)', ({ name, labels }) => {
  expect(numberOf(first.api, name, labels)).toBe(0)
})

test.each(
  combinations({
    postern_sends_total: [
      {
        provider: ['carrier', 'post'],
        outcome: [
          'accepted',
          'rejected',
          'invalid_recipient',
          'throttled',
          'unavailable',
          'unknown',
        ],
      },
    ],
    postern_sends_deferred_total: [
      { provider: ['carrier', 'post'], reason: ['paused', 'circuit'] },
    ],
    postern_sends_without_id_total: [{ provider: ['carrier', 'post'] }],
    postern_refunds_total: [{ provider: ['carrier', 'post'] }],
    postern_provider_circuit_open: [{ provider: ['carrier', 'post'] }],
    postern_provider_postponing: [{ provider: ['carrier', 'post'] }],
    postern_send_duration_seconds_count: [{ provider: ['carrier', 'post'] }],
    postern_notices_finished_total: [
      {
        kind: ['captcha', 'notice'],
        channel: ['sms', 'email'],
        state: ['sent', 'failed', 'expired'],
      },
    ],
    postern_notices_unsent_total: [
      { kind: ['captcha', 'notice'], channel: ['sms', 'email'], reason: [...unsentReasons] },
    ],
    postern_accepted_to_sent_seconds_count: [
      { kind: ['captcha', 'notice'], channel: ['sms', 'email'] },
    ],
    postern_reconciled_total: [{}],
    postern_receipts_total: [{ provider: ['carrier', 'post'], result: ['delivered', 'unmatched'] }],
    postern_events_total: [{ type: [...eventTypes], outcome: ['taken', 'failed', 'given_up'] }],
  }),
)('worker, first scrape: $name $labels stands at 0 (I28)', ({ name, labels }) => {
  expect(numberOf(first.worker, name, labels)).toBe(0)
})

test.each([...alerts, ...queries])(
  '$title: everything it selects exists from the first scrape (I28)',
  ({ expr }) => {
    const samples = [...first.api, ...first.worker]
    for (const { name, matchers } of selectorsOf(expr)) {
      if (name === 'up') continue
      for (const wanted of alternatives(matchers)) {
        expect(
          samples.some((sample) => fits(sample, name, wanted)),
          `${name} ${wanted}`,
        ).toBe(true)
      }
    }
  },
)

test('under load no series appears that was not there from the first scrape (I28)', () => {
  for (const process of ['api', 'worker'] as const) {
    const before = new Set(first[process].filter(isOwn).map(keyOf))
    const appeared = last[process].filter(isOwn).map(keyOf)
    expect(appeared.filter((key) => !before.has(key))).toEqual([])
  }
})

test.each([
  ['wrong guesses', 'postern_checks_total{result="mismatch"}', wrongGuesses],
  ['a refusal', 'postern_rejected_total{policy="captcha",rule="recipient"}', 1],
  ['a lock', 'postern_rejected_total{policy="check",rule="guesses"}', 1],
  ['a forged receipt', 'postern_receipts_total{result="forged"}', 1],
  ['a wrong key', 'postern_http_requests_total{route="/v1/notices/:id",status="401"}', 1],
  ['a failed delivery', 'postern_receipts_total{result="failed"}', 1],
])('increase() sees %s, the first after a start (I28)', async (_, series, count) => {
  // A request whose answer was lost on a busy machine was repeated.
  const [counted] = await prometheus.query(`sum(max_over_time(${series}[10m]))`)
  expect(counted?.value).toBeGreaterThanOrEqual(count * 0.95)
  expect(counted?.value).toBeLessThanOrEqual(count + 5)
  // Prometheus extrapolates beyond its samples, so the value is not exact.
  const [seen] = await prometheus.query(`sum(increase(${series}[10m]))`)
  expect(seen?.value).toBeGreaterThan(count * 0.9)
  expect(seen?.value).toBeLessThan((count + 5) * 2)
})

test('PosternWrongGuesses sees the guesses that came right after a start (I28)', async () => {
  const { expr } = alerts.find(({ title }) => title === 'PosternWrongGuesses') as Target
  const [share] = await prometheus.query(expr)
  expect(share?.value).toBeGreaterThan(0.9)
})

test.each(alerts)('$title: Prometheus has nothing against its expression', async ({ expr }) => {
  await prometheus.query(expr)
})

test.each(queries)('panel "$title" shows a number', async ({ expr }) => {
  // Once more, because a busy machine may have missed the last scrape.
  await eventually(
    async () => {
      const samples = await prometheus.query(expr)
      expect(samples.filter(({ value }) => Number.isFinite(value))).not.toEqual([])
    },
    { everyMs: 200 },
  )
})

test('a code that waits is seen whichever process is asked, and is no bulk notice', async () => {
  const ages = await eventually(async () => {
    const both = [await scrape(api), await scrape(worker)]
    const found = both.map((samples) => numberOf(samples, oldest, { kind: 'captcha' }) as number)
    return Math.min(...found) > 1 && { found, both }
  })
  for (const samples of ages.both) expect(numberOf(samples, oldest, { kind: 'notice' })).toBe(0)
  for (const samples of ages.both) {
    expect(numberOf(samples, 'postern_oldest_event_seconds', {})).toBeGreaterThan(0)
    expect(jobs(samples)).toBeGreaterThan(0)
  }
})

test('SIGHUP with a new rule: it stands at 0 before it refuses anything (I28)', async () => {
  const { captcha } = policyFile.policies
  const file = parse(readFileSync(env.POSTERN_CONFIG as string, 'utf8'))
  file.policies.captcha = [...captcha, { name: 'country', key: '{country}', fixed: '9 per 1h' }]
  writeFileSync(env.POSTERN_CONFIG as string, stringify(file))
  api.signal('SIGHUP')
  const labels = { policy: 'captcha', rule: 'country' }
  await eventually(async () => {
    expect(numberOf(await scrape(api), 'postern_rejected_total', labels)).toBe(0)
  })
})

test('promtool: the configurations hold, and every alert does as its cases demand', async () => {
  const folder = pathOf('deploy/prometheus')
  for (const file of ['prometheus.yml', 'systemd.yml']) {
    expect(await promtool(folder, 'check', 'config', file)).toContain('SUCCESS')
  }
  for (const file of ['alerts.test.yml', 'alerts-days.test.yml']) {
    expect(await promtool(folder, 'test', 'rules', file)).toContain('SUCCESS')
  }
})

test('Kubernetes: the job finds api and worker by their annotations, on the admin port, as postern', async () => {
  const { scrape_configs, alerting, ...file } = parse(read('deploy/prometheus/kubernetes.yml'))
  const [{ kubernetes_sd_configs, ...job }] = scrape_configs
  expect(file.rule_files).toEqual(['alerts.yml'])
  expect(kubernetes_sd_configs).toEqual([{ role: 'pod', namespaces: { names: ['postern'] } }])
  // Debian's Prometheus can't ask Kubernetes, so the test gives it Kubernetes' answers.
  const found = await startPrometheus({
    global: { scrape_interval: '1h' },
    alerting,
    scrape_configs: [{ ...job, static_configs: podsOf(['api', 'worker', 'migrate']) }],
  })
  const targets = await eventually(async () => {
    const active = await found.targets()
    return active.length > 0 && active
  })
  expect(
    targets.map(({ labels, scrapeUrl }) => `${labels.job} ${labels.instance} ${scrapeUrl}`).sort(),
  ).toEqual([
    'postern postern-api-0 http://127.0.0.2:9100/metrics',
    'postern postern-worker-0 http://127.0.0.2:9100/metrics',
  ])
  expect(await found.alertmanagers()).toEqual([
    'http://alertmanager.monitoring.svc:9093/api/v2/alerts',
  ])
})

const oldest = 'postern_oldest_pending_seconds'

const jobs = (samples: readonly Sample[]) =>
  samples
    .filter(({ metric }) => metric.__name__ === 'postern_queue_depth')
    .reduce((sum, { value }) => sum + value, 0)

/** Everything once, and 132 wrong guesses, three for each of 44 people. */
async function load(): Promise<void> {
  const number = (index: number) => `+86138001380${String(index).padStart(2, '0')}`
  // A 503 of a busy machine has changed nothing, so the request is repeated.
  const taken = (path: string, body: object) =>
    eventually(async () => {
      const reply = await post(path, body)
      return reply.status !== 503 && reply
    })
  const send = (to: string, channel = 'sms') => taken('/v1/captchas', { channel, to })
  const check = (to: string, code: string) =>
    taken('/v1/captchas/check', { channel: 'sms', to, code })
  const signed = (body: object[], by: string) => {
    const text = JSON.stringify(body)
    const headers = signWebhook(by, `msg_${Math.random()}`, Date.now(), text)
    return post('/v1/receipts/carrier', text, { key: null, headers: { ...headers } })
  }

  const codes = new Map<string, string>()
  farEnd.behave = ({ to, text }) => {
    codes.set(to, /(?<!\d)\d{4}(?!\d)/.exec(text)?.[0] ?? '')
    return { status: to === number(99) ? 503 : 200 }
  }
  const people = Array.from({ length: wrongGuesses / 3 }, (_, index) => number(index))
  const ids: string[] = []
  for (const { body } of await Promise.all(people.map((to) => send(to)))) ids.push(body.id)
  await eventually(() => people.every((to) => codes.has(to)))
  await Promise.all(
    people.map(async (to) => {
      const right = Number(codes.get(to))
      for (const miss of [1, 2, 3]) {
        await check(to, String((right + miss) % 10_000).padStart(4, '0'))
      }
    }),
  )
  await check(people[0] as string, '0000') // gone
  await send(people[0] as string) // refused

  const passing = number(60)
  ids.push((await send(passing)).body.id)
  await eventually(() => codes.has(passing))
  await check(passing, codes.get(passing) as string)
  await check(passing, codes.get(passing) as string) // gone
  await send('a@acme.test', 'email')
  await codeFor('a@acme.test')
  const notice = { channel: 'email', to: 'b@acme.test', template: 'welcome', params: { name: 'B' } }
  const { body } = await taken('/v1/notices', notice)
  const isSent = async (id: string) => (await get(`/v1/notices/${id}`)).body.state === 'sent'
  await eventually(() => isSent(body.id))
  await get(`/v1/notices/${body.id}`, { key: 'psk_wrong' })

  for (const id of ids) await eventually(() => isSent(id))
  const [failed, ...delivered] = ids
  await signed(
    [...delivered, ...delivered].map((noticeId) => ({ noticeId, outcome: 'delivered' })),
    secret,
  )
  await signed([{ noticeId: failed, outcome: 'failed' }], secret)
  await signed([{ noticeId: failed, outcome: 'delivered' }], 'another secret, as long')
  await get('/nowhere')
  // Stays pending, with its job.
  await send(number(99))
}

async function textOf({ adminUrl }: { adminUrl: string }): Promise<string> {
  const response = await fetch(`${adminUrl}/metrics`, { headers: { connection: 'close' } })
  expect(response.status).toBe(200)
  return response.text()
}

function parseScrape(text: string): Sample[] {
  return [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(
    ([, name = '', inside = '', value]) => ({
      metric: { __name__: name, ...labelsOf(inside) },
      value: value === 'Nan' ? Number.NaN : Number(value),
    }),
  )
}

function labelsOf(inside: string): Record<string, string> {
  return Object.fromEntries(
    [...inside.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
  )
}

const isOwn = ({ metric }: Sample) => !/^postern_(process|nodejs)_/.test(metric.__name__ as string)
const keyOf = ({ metric }: Sample) => JSON.stringify(metric)

function numberOf(
  samples: readonly Sample[],
  name: string,
  labels: Readonly<Record<string, string>>,
): number | undefined {
  return samples.find(({ metric }) =>
    Object.entries({ __name__: name, ...labels }).every(
      ([label, value]) => metric[label] === value,
    ),
  )?.value
}

type Matcher = readonly [label: string, operator: string, value: string]

function selectorsOf(expr: string): { name: string; matchers: Matcher[] }[] {
  return [...expr.matchAll(/\b(postern_\w+|up)(?:\{([^}]*)\})?/g)].map(
    ([, name = '', inside = '']) => ({
      name,
      matchers: [...inside.matchAll(/(\w+)(=~|=)"([^"]*)"/g)].map(
        ([, label = '', operator = '', value = '']) => [label, operator, value] as const,
      ),
    }),
  )
}

/** `a|b` needs both. A demo and a host app do not run here, so their series are not needed. */
function alternatives(matchers: readonly Matcher[]): Matcher[][] {
  let all: Matcher[][] = [[]]
  for (const [label, operator, value] of matchers) {
    const values = value
      .split('|')
      .filter((each) => label !== 'process' || !['demo', 'embedded'].includes(each))
    all = all.flatMap((list) => values.map((each) => [...list, [label, operator, each] as const]))
  }
  return all
}

function fits({ metric }: Sample, name: string, matchers: readonly Matcher[]): boolean {
  if (metric.__name__ !== name) return false
  return matchers.every(([label, operator, value]) =>
    operator === '='
      ? metric[label] === value
      : new RegExp(`^(?:${value})$`).test(metric[label] ?? ''),
  )
}

type LabelSets = Readonly<Record<string, readonly string[]>>

function combinations(sets: Readonly<Record<string, readonly LabelSets[]>>) {
  return Object.entries(sets).flatMap(([name, list]) =>
    list.flatMap((labels) => {
      let all: Record<string, string>[] = [{}]
      for (const [label, values] of Object.entries(labels)) {
        all = all.flatMap((one) => values.map((value) => ({ ...one, [label]: value })))
      }
      return all.map((one) => ({ name, labels: one }))
    }),
  )
}

function rulesOf(policies: Readonly<Record<string, readonly { name: string }[]>>): LabelSets[] {
  return Object.entries(policies).flatMap(([policy, rules]) =>
    rules.map(({ name }) => ({ policy: [policy], rule: [name] })),
  )
}

/** Kubernetes' answer for the pods in these manifests: a target for each port, or one without a port. */
function podsOf(names: readonly string[]) {
  return names.flatMap((name) => {
    const documents = parseAllDocuments(read(`deploy/kubernetes/${name}.yaml`))
    const found = documents.map((document) => document.toJS()).find(({ spec }) => spec.template)
    const { metadata, spec } = found.spec.template as {
      metadata: { annotations?: Record<string, string> }
      spec: { containers: { ports?: { containerPort: number }[] }[] }
    }
    const annotations = Object.entries(metadata.annotations ?? {}).map(([key, value]) => [
      `__meta_kubernetes_pod_annotation_${key.replaceAll(/\W/g, '_')}`,
      value,
    ])
    const ports = spec.containers.flatMap(({ ports = [] }) =>
      ports.map((each) => each.containerPort),
    )
    return (ports.length > 0 ? ports : [undefined]).map((port) => ({
      targets: [port === undefined ? '127.0.0.2' : `127.0.0.2:${port}`],
      labels: {
        ...Object.fromEntries(annotations),
        __meta_kubernetes_pod_name: `${found.metadata.name}-0`,
        __meta_kubernetes_pod_phase: 'Running',
        ...(port === undefined
          ? {}
          : { __meta_kubernetes_pod_container_port_number: String(port) }),
      },
    }))
  })
}
