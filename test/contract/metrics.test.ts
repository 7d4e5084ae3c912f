/**
 * docs/metrics.md, the dashboard and the alert rules name metrics and labels as text. This test compares them with
 * the metrics of all rooms, in both directions.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { suppressionReasons } from '../../src/base/suppression.ts'
import { unsentReasons } from '../../src/notice/states.ts'
import { anchorsOf } from '../tools/markdown.ts'
import { testMetrics } from '../tools/metrics.ts'

const pathOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const read = (path: string) => readFileSync(pathOf(path), 'utf8')

interface Listed {
  name: string
  type: string
  help: string
  labelNames?: string[]
}

const all = new Map(
  (testMetrics().registry.getMetricsAsArray() as unknown as Listed[]).map((metric) => [
    metric.name,
    metric,
  ]),
)
/** Metrics that the Prometheus client collects of every Node process. The docs name those that Postern uses. */
const isDefault = (name: string) => /^postern_(process|nodejs)_/.test(name)
const own = [...all.values()].filter(({ name }) => !isDefault(name))

/** Labels that a scrape or a histogram adds. */
const addedLabels = ['process', 'instance', 'job', 'le']

/** Metrics that the dashboard does not show, with the reason. */
const notOnDashboard: Record<string, string> = {
  postern_test_sends_total: 'of use to whoever tests, not to who runs the service',
  postern_log_lines_dropped_total: 'of use only to explain why the log lacks lines',
  postern_records_dropped_total: 'of use only to explain why a look-up or a replay lacks something',
}

interface Panel {
  title: string
  targets?: { expr: string; legendFormat: string }[]
}
const dashboard = JSON.parse(read('deploy/grafana/dashboards/postern.json')) as {
  panels: Panel[]
  templating: { list: { name: string }[] }
}
const onDashboard = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map((target) => ({ where: `panel "${title}"`, ...target })),
)

interface Rule {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; runbook_url: string }
}
const { groups } = parse(read('deploy/prometheus/alerts.yml')) as {
  groups: { rules: (Rule | { record: string; expr: string })[] }[]
}
const allRules = groups.flatMap((group) => group.rules)
const alerts = allRules.filter((rule) => 'alert' in rule)
const records = new Map(
  allRules.flatMap((rule) => ('record' in rule ? [[rule.record, rule.expr]] : [])),
)
/** Names of recording rules stand for their expressions. */
function inFull(expr: string): string {
  return expr.replace(/postern:\w+:\w+/g, (name) => inFull(records.get(name) ?? name))
}
const rules = alerts.map(({ alert, expr, annotations }) => ({
  where: `alert ${alert}`,
  expr: inFull(expr),
  legendFormat: annotations.summary,
}))

/** The metrics of an expression by the names of the list, without the suffixes of histograms. */
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

test('each reason of postern_notices_unsent_total is an error that docs/http.md explains', () => {
  const table = read('docs/http.md').split('`error` is one of')[1]?.split('\n\n')[1] ?? ''
  const errors = [...table.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, names = '']) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  )
  // A receipt comes after the message was sent. `abandoned` was never accepted.
  const afterwards = ['not_delivered', 'abandoned']
  expect([...unsentReasons, ...afterwards].sort()).toEqual(errors.sort())
})

test('an alert reads each reason but those in which nothing was lost', () => {
  const read = rules.flatMap(({ expr }) =>
    [...expr.matchAll(/reason=~"([^"]+)"/g)].flatMap(([, names = '']) => names.split('|')),
  )
  const noLoss = ['code_gone', 'invalid_recipient', 'postponed', ...suppressionReasons]
  expect([...new Set([...read, ...noLoss])].sort()).toEqual([...unsentReasons].sort())
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
  expect(missing.sort()).toEqual(Object.keys(notOnDashboard).sort())
})

test('the dashboard takes data source and process from variables, and has an id for every panel', () => {
  const ids = (dashboard.panels as unknown as { id: number }[]).map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  expect(dashboard.templating.list.map(({ name }) => name)).toEqual(['datasource', 'process'])
  const used = [...read('deploy/grafana/dashboards/postern.json').matchAll(/"uid": "([^"]+)"/g)]
  // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's variable
  expect(new Set(used.map(([, uid]) => uid))).toEqual(new Set(['postern', '${datasource}']))
  const ofBoth = ['panel "Delivered"', 'panel "Codes typed"']
  for (const { where, expr } of onDashboard) {
    // API processes take receipts and checks, and workers send, so a share of the two needs both.
    const selectors = expr.match(/postern_\w+(\{[^}]*\})?/g) ?? []
    const limited = selectors.filter((selector) => selector.includes('process=~"$process"'))
    expect(limited.length, expr).toBe(ofBoth.includes(where) ? 0 : selectors.length)
  }
})

test('the dashboard is what its script prints', () => {
  const printed = execFileSync(process.execPath, [pathOf('deploy/grafana/dashboard.ts')], {
    encoding: 'utf8',
    timeout: 60_000,
  })
  expect(printed).toBe(read('deploy/grafana/dashboards/postern.json'))
})

test.each(alerts)(
  '$alert is a page or a ticket, and its runbook is a section of operations.md',
  (alert) => {
    const { repository } = JSON.parse(read('package.json')) as { repository: { url: string } }
    const home = repository.url.replace(/^git\+/, '').replace(/\.git$/, '')
    const [page, anchor] = alert.annotations.runbook_url.split('#')
    expect(page).toBe(`${home}/blob/main/docs/operations.md`)
    expect(anchor).toBe(alert.alert.toLowerCase())
    expect(anchorsOf(read('docs/operations.md'))).toContain(anchor)
    expect(alert.labels.severity).toMatch(/^(page|ticket)$/)
  },
)

interface PromtoolTests {
  tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[]
}

test.each(alerts)(
  '$alert has a case in which it fires and one in which it does not',
  ({ alert }) => {
    const files = ['alerts.test.yml', 'alerts-days.test.yml']
    const cases = files
      .flatMap((file) => (parse(read(`deploy/prometheus/${file}`)) as PromtoolTests).tests)
      .flatMap((each) => each.alert_rule_test)
      .filter(({ alertname }) => alertname === alert)
    expect(cases.some(({ exp_alerts }) => exp_alerts.length > 0)).toBe(true)
    expect(cases.some(({ exp_alerts }) => exp_alerts.length === 0)).toBe(true)
  },
)

/** Prometheus 3 stores a bucket of a whole number as `10.0`, Prometheus 2 as it is scraped: `10`. */
test.each([...onDashboard, ...rules])(
  '$where finds its buckets in Prometheus 2 and 3',
  ({ expr }) => {
    for (const [matcher, operator, value = ''] of expr.matchAll(/\ble\s*(=~|=)\s*"([^"]*)"/g)) {
      const pattern = new RegExp(`^(?:${value.replaceAll('\\\\', '\\')})$`)
      const [bucket = ''] = /^[\d.]+/.exec(value) ?? []
      const forms = Number.isInteger(Number(bucket)) ? [bucket, `${bucket}.0`] : [bucket]
      const found = forms.filter((form) => (operator === '=' ? form === value : pattern.test(form)))
      expect(found, matcher).toEqual(forms)
    }
  },
)
