/**
 * Two panels of the dashboard over a minute and a half. Half a minute of ordinary traffic, half a minute in which one
 * number is bombed and codes are guessed, then ordinary traffic again. The queries are the dashboard's, sent to a
 * real Prometheus. With DOCS_IMAGES set, the pictures become docs/images/panel-….svg.
 */
import { randomInt } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { clientOf, processEnv } from '../tools/postern.ts'
import { startProcess } from '../tools/processes.ts'
import { startPrometheus } from '../tools/prometheus.ts'
import { testRedis } from '../tools/redis.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { eventually } from '../tools/wait.ts'
import { drawPanel } from './draw-panel.ts'

const shown = { 'panel-refused': 'Refused, by policy and rule', 'panel-checks': 'Checks by result' }

interface Panel {
  readonly title: string
  readonly fieldConfig: { readonly defaults: { readonly unit: string } }
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[]
}
const { panels } = JSON.parse(
  readFileSync(join(repositoryRoot, 'deploy/grafana/dashboards/postern.json'), 'utf8'),
) as { panels: Panel[] }

test('an attack, as the dashboard shows it', { timeout: 180_000 }, async () => {
  const env = processEnv({ redis: await testRedis(), database: await testDatabase() })
  const processes = [await startProcess('api', { env }), await startProcess('worker', { env })]
  const [api] = processes
  const prometheus = await startPrometheus({
    global: { scrape_interval: '1s', scrape_timeout: '1s' },
    scrape_configs: [
      {
        job_name: 'postern',
        static_configs: [{ targets: processes.map(({ adminUrl }) => new URL(adminUrl).host) }],
      },
    ],
  })
  await eventually(
    async () => (await prometheus.query('count_over_time(postern_ready[1m]) > 1')).length === 2,
  )
  const client = clientOf(api?.url ?? '', env.BOOTSTRAP_SECRET_KEY as string)
  const fromS = Math.ceil(Date.now() / 1_000)
  const untilS = (second: number) => () => Date.now() / 1_000 < fromS + second
  await visit(client, untilS(30))
  await Promise.all([visit(client, untilS(60)), attack(client, untilS(60))])
  await visit(client, untilS(90))

  for (const [file, title] of Object.entries(shown)) {
    const panel = panels.find((one) => one.title === title) ?? expect.unreachable(title)
    const found = await Promise.all(
      panel.targets.map(async ({ expr, legendFormat }) => {
        const query = expr.replaceAll('$process', '.*').replaceAll('$__rate_interval', '10s')
        const series = await prometheus.queryRange(query, fromS + 5, fromS + 90)
        return series.map(({ metric, points }) => ({
          name: legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, label) => metric[label] ?? ''),
          points: points.filter(([, value]) => Number.isFinite(value)),
        }))
      }),
    )
    const lines = found.flat().filter(({ points }) => points.some(([, value]) => value > 0))
    expect(lines.length, title).toBeGreaterThan(0)
    for (const { points } of lines) expect(points.length, title).toBeGreaterThan(20)
    const svg = drawPanel({ title, unit: panel.fieldConfig.defaults.unit, lines })
    if (process.env.DOCS_IMAGES) {
      writeFileSync(join(repositoryRoot, `docs/images/${file}.svg`), svg)
    }
  }
})

type Client = ReturnType<typeof clientOf>

const someNumber = () => `+861380${String(randomInt(10_000_000)).padStart(7, '0')}`
const someIp = () => `203.0.${randomInt(256)}.${randomInt(256)}`

/** About ten people a second, each from a different address, who get their code and type it. */
async function visit({ post, codeFor }: Client, goesOn: () => boolean): Promise<void> {
  while (goesOn()) {
    const person = { channel: 'sms', to: someNumber(), ip: someIp() }
    const sent = await post('/v1/captchas', person)
    if (sent.status === 202) {
      const code = await codeFor(sent.body.id)
      await post('/v1/captchas/check', { ...person, code })
    }
    await sleep(80)
  }
}

/** One number is bombed from everywhere, and half as often its codes are guessed from one address. */
async function attack({ post }: Client, goesOn: () => boolean): Promise<void> {
  const victim = { channel: 'sms', to: someNumber() }
  while (goesOn()) {
    for (const ip of [someIp(), someIp()]) await post('/v1/captchas', { ...victim, ip })
    await post('/v1/captchas/check', { ...victim, ip: '198.51.100.7', code: '0000' })
    await sleep(20)
  }
}
