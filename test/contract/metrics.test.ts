/**
 * docs/metrics.md, the dashboard and the alert rules name metrics and labels as text: here they are
 * held to the list in src/metrics/metrics.ts, both ways.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { createMetrics } from '../../src/metrics/metrics.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

interface Listed {
  name: string
  type: string
  help: string
  labelNames?: string[]
}

const all = new Map(
  (createMetrics({ process: 'demo' }).registry.getMetricsAsArray() as unknown as Listed[]).map(
    (metric) => [metric.name, metric],
  ),
)
/** What prom-client collects of every Node process: documented by name where we use it. */
const isDefault = (name: string) => /^postern_(process|nodejs)_/.test(name)
const own = [...all.values()].filter(({ name }) => !isDefault(name))

/** What a scrape or a histogram adds. */
const addedLabels = ['process', 'instance', 'job', 'le']

/** Not on the dashboard, and why. */
const notOnDashboard: Record<string, string> = {
  postern_log_lines_dropped_total: 'of use only to explain why the log lacks lines',
}

interface Panel {
  title: string
  targets?: { expr: string; legendFormat: string }[]
}
const dashboard = JSON.parse(read('deploy/grafana/dashboards/postern.json')) as { panels: Panel[] }
const onDashboard = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map((target) => ({ where: `panel "${title}"`, ...target })),
)

interface Rule {
  alert: string
  expr: string
  annotations: { summary: string }
}
const rules = (
  parse(read('deploy/prometheus/alerts.yml')) as { groups: { rules: Rule[] }[] }
).groups
  .flatMap((group) => group.rules)
  .map(({ alert, expr, annotations }) => ({
    where: `alert ${alert}`,
    expr,
    legendFormat: annotations.summary,
  }))

/** The metrics of an expression by the names of the list, histogram parts taken off. */
function metricsIn(expr: string): string[] {
  return (expr.match(/postern_[a-z0-9_]+\b(?!\*)/g) ?? []).map((name) => {
    const base = name.replace(/_(bucket|sum|count)$/, '')
    return all.get(base)?.type === 'histogram' ? base : name
  })
}

function labelsIn(expr: string, legend: string): string[] {
  const matched = [...expr.matchAll(/\{([^}]*)\}/g)].flatMap(([, inside = '']) =>
    [...inside.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, label]) => label as string),
  )
  const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) =>
    list.split(',').map((label) => label.trim()),
  )
  const shown = [...legend.matchAll(/\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}/g)].map(
    ([, label]) => label as string,
  )
  return [...matched, ...grouped, ...shown]
}

test('docs/metrics.md lists every metric with its type and labels, and no other', () => {
  const rows = [...read('docs/metrics.md').matchAll(/^\| `(postern_\w+)` \| (\w+) \| (.*?) \|/gm)]
  const documented = rows
    .filter(([, name = '']) => !isDefault(name))
    .map(([, name, type, labels = '']) => ({
      name,
      type,
      labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label),
    }))
  const expected = own.map(({ name, type, labelNames = [] }) => ({
    name,
    type,
    labels: labelNames.filter((label) => label !== 'process'),
  }))
  const byName = (a: { name?: string | undefined }, b: { name?: string | undefined }) =>
    String(a.name).localeCompare(String(b.name))
  expect(documented.sort(byName)).toEqual(expected.sort(byName))
})

test('docs/metrics.md mentions no metric that does not exist', () => {
  for (const name of metricsIn(read('docs/metrics.md'))) expect([...all.keys()]).toContain(name)
})

test.each([...onDashboard, ...rules])('$where uses metrics and labels of the list', (use) => {
  const names = metricsIn(use.expr)
  const known = names.flatMap((name) => {
    expect([...all.keys()], use.expr).toContain(name)
    return all.get(name)?.labelNames ?? []
  })
  expect(names.length > 0 || use.expr.startsWith('up{')).toBe(true)
  for (const label of labelsIn(use.expr, use.legendFormat)) {
    expect([...known, ...addedLabels], use.expr).toContain(label)
  }
})

test('the dashboard shows every metric of the list, or there is a reason why not', () => {
  const shown = new Set(onDashboard.flatMap(({ expr }) => metricsIn(expr)))
  const missing = own.map(({ name }) => name).filter((name) => !shown.has(name))
  expect(missing).toEqual(Object.keys(notOnDashboard))
})

test('the dashboard has an id for every panel and only the provisioned data source', () => {
  const ids = (dashboard.panels as unknown as { id: number }[]).map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  const { datasources } = parse(read('deploy/grafana/provisioning/datasources/prometheus.yml')) as {
    datasources: { uid: string }[]
  }
  const used = [...JSON.stringify(dashboard).matchAll(/"uid":"(\w+)"/g)].map(([, uid]) => uid)
  expect(new Set(used)).toEqual(new Set(['postern', ...datasources.map(({ uid }) => uid)]))
})

test('docs/operations.md says what to do about every alert', () => {
  const operations = read('docs/operations.md')
  for (const { where } of rules) expect(operations).toContain(`\`${where.replace('alert ', '')}\``)
})

const hasPromtool = spawnSync('promtool', ['--version']).status === 0

test.skipIf(!hasPromtool)(
  'promtool takes the configuration and the alert rules behave as their tests say (needs promtool on the PATH)',
  () => {
    const folder = new URL('../../deploy/prometheus/', import.meta.url)
    const run = (...args: string[]) =>
      execFileSync('promtool', args, { cwd: folder, encoding: 'utf8', timeout: 15_000 })
    expect(run('check', 'config', 'prometheus.yml')).toContain('SUCCESS')
    expect(run('test', 'rules', 'alerts.test.yml')).toContain('SUCCESS')
  },
)
