/**
 * Prints the dashboard that Grafana reads: `npm run dashboard`. What differs from panel to panel stands
 * here, the rest of Grafana's JSON once; a test holds dashboards/postern.json to it.
 *
 * Every query is limited to the processes of the variable but for those that set one kind of process
 * against another.
 */
type Query = readonly [legend: string, expr: string]

interface Panel {
  readonly title: string
  readonly description?: string
  readonly unit: string
  /** Filled and stacked, for the parts of a sum. */
  readonly isStacked?: boolean
  readonly max?: number
  /** Drawn as a red line: the threshold of the alert. */
  readonly alertAt?: number
  readonly queries: readonly Query[]
}

const of = (metric: string, matchers = '') =>
  `${metric}{process=~"$process"${matchers === '' ? '' : `,${matchers}`}}`
const by = (labels: string) => (labels === '' ? '' : ` by (${labels}) `)
const rate = (metric: string, matchers = '', window = '$__rate_interval') =>
  `rate(${of(metric, matchers)}[${window}])`
const sumRate = (labels: string, metric: string, matchers = '', window = '$__rate_interval') =>
  `sum${by(labels)}(${rate(metric, matchers, window)})`
const increase = (labels: string, metric: string, matchers: string, window: string) =>
  `sum${by(labels)}(increase(${metric}{${matchers}}[${window}]))`
const quantile = (q: number, labels: string, metric: string) =>
  `histogram_quantile(${q}, ${sumRate(labels === '' ? 'le' : `le, ${labels}`, `${metric}_bucket`)})`
const quantiles = (labels: string, metric: string, legend = ''): Query[] =>
  [0.5, 0.95, 0.99].map((q) => [`p${q * 100}${legend}`, quantile(q, labels, metric)])

/** The same expressions as in the group postern-objective of deploy/prometheus/alerts.yml. */
const ofCodes = (metric: string, matchers = '') =>
  `sum by (channel) (increase(${of(metric, `kind="captcha"${matchers}`)}[1h]))`
const sent = ofCodes('postern_accepted_to_sent_seconds_count')
const inTime = ofCodes('postern_accepted_to_sent_seconds_bucket', ',le=~"10(\\\\.0)?"')
const lost = ofCodes(
  'postern_notices_unsent_total',
  ',reason=~"tries_used_up|too_late|provider_away|no_route|not_rendered|code_lost|rejected|outcome_unknown"',
)

const rows: readonly (readonly [title: string, ...lines: readonly (readonly Panel[])[]])[] = [
  [
    'Accepted and refused',
    [
      {
        title: 'Accepted',
        description: 'Sends answered with 202.',
        unit: 'reqps',
        isStacked: true,
        queries: [['{{kind}} {{channel}}', sumRate('kind, channel', 'postern_accepted_total')]],
      },
      {
        title: 'Refused, by policy and rule',
        description: 'Answered with 429: limited or locked.',
        unit: 'reqps',
        isStacked: true,
        queries: [['{{policy}} {{rule}}', sumRate('policy, rule', 'postern_rejected_total')]],
      },
      {
        title: 'Would be refused (mode: observe)',
        description: 'Rules on trial: counted, never refusing.',
        unit: 'reqps',
        isStacked: true,
        queries: [['{{policy}} {{rule}}', sumRate('policy, rule', 'postern_observed_total')]],
      },
      {
        title: 'Refused by load',
        description:
          'Answered with 503 because too many requests of the kind were under way. No fault, and not in PosternErrors.',
        unit: 'reqps',
        isStacked: true,
        queries: [['{{route}}', sumRate('route', 'postern_shed_total')]],
      },
    ],
    [
      {
        title: 'Wait before work',
        description: 'Of a request with a key: at its socket, and for its turn. Part of its time.',
        unit: 's',
        queries: quantiles('', 'postern_http_wait_seconds'),
      },
      {
        title: 'Cost of a refusal',
        description: 'From the first byte of a request to its 429.',
        unit: 's',
        queries: quantiles('', 'postern_refusal_duration_seconds'),
      },
      {
        title: 'Share of refusals',
        description: 'Of all requests, and of the time that all answers took: what refusing costs.',
        unit: 'percentunit',
        max: 1,
        queries: [
          [
            'of requests',
            `${sumRate('', 'postern_refusal_duration_seconds_count')} / ${sumRate('', 'postern_http_request_duration_seconds_count')}`,
          ],
          [
            'of time',
            `${sumRate('', 'postern_refusal_duration_seconds_sum')} / ${sumRate('', 'postern_http_request_duration_seconds_sum')}`,
          ],
        ],
      },
    ],
  ],
  [
    'Checks',
    [
      {
        title: 'Checks by result',
        description:
          'passed: right. mismatch: compared and wrong. gone: there was no code to compare. refused: by a rule of the policy check, before comparing.',
        unit: 'reqps',
        isStacked: true,
        queries: [['{{result}}', sumRate('result', 'postern_checks_total')]],
      },
      {
        title: 'Share of wrong guesses',
        description:
          'Wrong codes among all that were compared. People mistype about one in ten; the alert is at 40 %. Codes of four digits stand on this.',
        unit: 'percentunit',
        max: 1,
        alertAt: 0.4,
        queries: [
          [
            'wrong',
            `${sumRate('', 'postern_checks_total', 'result="mismatch"')} / ${sumRate('', 'postern_checks_total', 'result=~"passed|mismatch"')}`,
          ],
        ],
      },
      {
        title: 'Conversion',
        description:
          'Codes that passed among codes accepted, in half an hour. A code asked for again counts twice. A fall with no fall in "Delivered" is somebody who sends and never checks.',
        unit: 'percentunit',
        queries: [
          [
            'passed / accepted',
            `${sumRate('', 'postern_checks_total', 'result="passed"', '30m')} / ${sumRate('', 'postern_accepted_total', 'kind="captcha"', '30m')}`,
          ],
        ],
      },
    ],
    [
      {
        title: 'Challenges',
        description:
          'Offered to callers from pages, and what their answers came to. Many offered and few solved: the rules in mode challenge keep something away.',
        unit: 'reqps',
        queries: [['{{result}}', sumRate('result', 'postern_challenges_total')]],
      },
    ],
  ],
  [
    'Sends',
    [
      {
        title: 'Provider calls by outcome',
        unit: 'reqps',
        isStacked: true,
        queries: [
          ['{{provider}} {{outcome}}', sumRate('provider, outcome', 'postern_sends_total')],
        ],
      },
      {
        title: 'Accepted without an id',
        description: 'A vendor names an id. Only a webhook may accept without one.',
        unit: 'reqps',
        queries: [['{{provider}}', sumRate('provider', 'postern_sends_without_id_total')]],
      },
      {
        title: 'Codes typed',
        description:
          'The share of the codes that a provider accepted and people typed, in an hour. It falls where a provider accepts messages and delivers none.',
        unit: 'percentunit',
        queries: [
          [
            '{{provider}} {{channel}}',
            `${increase('provider, channel', 'postern_conversions_total', 'outcome="passed"', '1h')} / (${increase('provider, channel', 'postern_conversions_total', '', '1h')} > 0)`,
          ],
        ],
      },
      {
        title: 'Refunds',
        description:
          'Messages whose price a provider gave back, because it did not deliver them in time.',
        unit: 'reqps',
        queries: [['{{provider}}', sumRate('provider', 'postern_refunds_total')]],
      },
      {
        title: 'Time a provider takes',
        unit: 's',
        queries: quantiles('provider', 'postern_send_duration_seconds', ' {{provider}}'),
      },
      {
        title: 'Notices that ended',
        description: 'sent: taken by a provider. failed and expired: not received.',
        unit: 'reqps',
        isStacked: true,
        queries: [
          [
            '{{kind}} {{channel}} {{state}}',
            sumRate('kind, channel, state', 'postern_notices_finished_total'),
          ],
        ],
      },
      {
        title: 'Ended unsent',
        description:
          'Accepted notices within an hour, by error. code_gone (a newer code was asked for), invalid_recipient and postponed are no loss; rejected and outcome_unknown are a ticket, each of the others is a page.',
        unit: 'short',
        isStacked: true,
        queries: [
          [
            '{{kind}} {{channel}} {{reason}}',
            `sum by (kind, channel, reason) (increase(${of('postern_notices_unsent_total')}[1h]))`,
          ],
        ],
      },
    ],
  ],
  [
    'Providers and receipts',
    [
      {
        title: 'Delivered',
        description:
          'Receipts of delivery among the messages a provider has accepted, in an hour; only providers that give receipts. API processes take receipts and workers send, so the process variable is not asked.',
        unit: 'percentunit',
        queries: [
          [
            '{{provider}}',
            `${increase('provider', 'postern_receipts_total', 'result="delivered"', '1h')} / ${increase('provider', 'postern_sends_total', 'outcome="accepted"', '1h')} and ${increase('provider', 'postern_receipts_total', 'result=~"delivered|failed"', '1h')} > 0`,
          ],
        ],
      },
      {
        title: 'Receipts',
        description: 'What providers said later; forged ones are refused.',
        unit: 'ops',
        queries: [
          ['{{provider}} {{result}}', sumRate('provider, result', 'postern_receipts_total')],
        ],
      },
      {
        title: 'Suppressed recipients',
        description:
          'Reports because of which a recipient gets no messages, and sends refused because of such a report.',
        unit: 'ops',
        queries: [
          ['{{provider}} {{reason}}', sumRate('provider, reason', 'postern_suppressions_total')],
          ['refused: {{reason}}', sumRate('reason', 'postern_suppressed_total')],
        ],
      },
      {
        title: 'Skipped providers',
        description:
          'Workers that skip a provider because it failed, and workers whose recipients it postpones nearly all.',
        unit: 'short',
        queries: [
          ['{{provider}}', `sum by (provider) (${of('postern_provider_circuit_open')})`],
          ['{{provider}} postpones', `sum by (provider) (${of('postern_provider_postponing')})`],
        ],
      },
      {
        title: 'Not called',
        description: 'Messages that waited or went elsewhere, by reason.',
        unit: 'ops',
        queries: [
          ['{{provider}} {{reason}}', sumRate('provider, reason', 'postern_sends_deferred_total')],
        ],
      },
    ],
  ],
  [
    'Time from accepted to sent',
    [
      {
        title: 'Codes and notices together',
        description: 'From the 202 to the acceptance by a provider.',
        unit: 's',
        queries: quantiles('', 'postern_accepted_to_sent_seconds'),
      },
      {
        title: 'Codes late or lost',
        description:
          'Codes within an hour that no provider had within 10 s, or that were lost. The objective allows 1 %, the red line.',
        unit: 'percentunit',
        max: 1,
        alertAt: 0.01,
        queries: [['{{channel}}', `1 - ${inTime} / (${sent} + ${lost})`]],
      },
      {
        title: 'p99 by kind and channel',
        unit: 's',
        queries: [
          [
            '{{kind}} {{channel}}',
            quantile(0.99, 'kind, channel', 'postern_accepted_to_sent_seconds'),
          ],
        ],
      },
    ],
  ],
  [
    'Queue',
    [
      {
        title: 'Jobs',
        description: 'Every process reports the same queue, hence max and not sum.',
        unit: 'short',
        isStacked: true,
        queries: [
          [
            '{{channel}} {{kind}} {{state}}',
            `max by (channel, kind, state) (${of('postern_queue_depth')})`,
          ],
        ],
      },
      {
        title: 'Asked for ahead of time',
        description: 'Notices that wait for their time; their jobs are among the delayed ones.',
        unit: 'short',
        queries: [['notices', `max(${of('postern_scheduled_notices')})`]],
      },
      {
        title: 'Oldest pending',
        description:
          'Age of the oldest notice without a final state; the alert for codes is at two minutes.',
        unit: 's',
        alertAt: 120,
        queries: [['{{kind}}', `max by (kind) (${of('postern_oldest_pending_seconds')})`]],
      },
      {
        title: 'Put back on the queue',
        description:
          'Notices that had lost their job: after a crash, or while Redis did not answer.',
        unit: 'ops',
        queries: [['by the reconciler', sumRate('', 'postern_reconciled_total')]],
      },
      {
        title: 'Background failures',
        description: 'Failures of background tasks, which run again. The log has the reason.',
        unit: 'ops',
        queries: [['{{task}}', sumRate('task', 'postern_background_failures_total')]],
      },
    ],
  ],
  [
    'Events',
    [
      {
        title: 'Events told',
        description: 'Tries to tell receivers; failed ones are told again for a day.',
        unit: 'ops',
        queries: [['{{type}} {{outcome}}', sumRate('type, outcome', 'postern_events_total')]],
      },
      {
        title: 'Oldest event',
        description:
          'Age of the oldest event that no receiver has taken yet; the alert is at a quarter of an hour.',
        unit: 's',
        alertAt: 900,
        queries: [['oldest', `max(${of('postern_oldest_event_seconds')})`]],
      },
    ],
  ],
  [
    'HTTP',
    [
      {
        title: 'Requests by route',
        unit: 'reqps',
        isStacked: true,
        queries: [
          ['{{method}} {{route}}', sumRate('method, route', 'postern_http_requests_total')],
        ],
      },
      {
        title: 'Requests by status',
        unit: 'reqps',
        isStacked: true,
        queries: [['{{status}}', sumRate('status', 'postern_http_requests_total')]],
      },
      {
        title: 'p99 by route',
        unit: 's',
        queries: [['{{route}}', quantile(0.99, 'route', 'postern_http_request_duration_seconds')]],
      },
      {
        title: 'Sign-ins at the console',
        description:
          'Keys tried within an hour. People make few of these: a hundred that are not ok are somebody guessing.',
        unit: 'short',
        queries: [
          [
            '{{outcome}}',
            `sum by (outcome) (increase(${of('postern_console_sign_ins_total')}[1h]))`,
          ],
        ],
      },
    ],
  ],
  [
    'Processes',
    [
      {
        title: 'Ready',
        description: '0: /readyz of that process says why.',
        unit: 'short',
        max: 1,
        queries: [['{{process}} {{instance}}', of('postern_ready')]],
      },
      {
        title: 'CPU',
        description: '1 is one core.',
        unit: 'percentunit',
        queries: [['{{process}} {{instance}}', rate('postern_process_cpu_seconds_total')]],
      },
      {
        title: 'Memory',
        unit: 'bytes',
        queries: [['{{process}} {{instance}}', of('postern_process_resident_memory_bytes')]],
      },
      {
        title: 'Event loop lag, p99',
        description: 'Above 0.1 s a process is short of CPU: add processes.',
        unit: 's',
        queries: [['{{process}} {{instance}}', of('postern_nodejs_eventloop_lag_p99_seconds')]],
      },
    ],
  ],
]

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana puts its variable here
const datasource = { type: 'prometheus', uid: '${datasource}' }
const processes = { query: 'label_values(postern_ready, process)', refId: 'process' }

const variables = [
  { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
  {
    name: 'process',
    label: 'Process',
    type: 'query',
    datasource,
    query: processes,
    definition: processes.query,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { text: ['All'], value: ['$__all'] },
    refresh: 2,
    sort: 1,
  },
]

const panelHeight = 8

function panels() {
  const all: { id: number; gridPos: object; type: string; title: string }[] = []
  let y = 0
  const place = (panel: { type: string; title: string }, x: number, w: number, h: number) =>
    all.push({ id: all.length + 1, gridPos: { x, y, w, h }, ...panel })
  for (const [title, ...lines] of rows) {
    place({ type: 'row', title, ...{ collapsed: false, panels: [] } }, 0, 24, 1)
    y += 1
    for (const line of lines) {
      const width = 24 / line.length
      line.forEach((panel, index) => {
        place(timeSeries(panel), index * width, width, panelHeight)
      })
      y += panelHeight
    }
  }
  return all
}

function timeSeries(panel: Panel) {
  const { title, description, unit, isStacked, max, alertAt, queries } = panel
  const steps = [
    { color: 'green', value: null },
    { color: 'red', value: alertAt },
  ]
  return {
    type: 'timeseries',
    title,
    ...(description === undefined ? {} : { description }),
    datasource,
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        ...(max === undefined ? {} : { max }),
        custom: {
          showPoints: 'never',
          lineWidth: 1,
          ...(isStacked ? { fillOpacity: 20, stacking: { mode: 'normal' } } : { fillOpacity: 5 }),
          ...(alertAt === undefined ? {} : { thresholdsStyle: { mode: 'line' } }),
        },
        ...(alertAt === undefined ? {} : { thresholds: { mode: 'absolute', steps } }),
      },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: queries.map(([legendFormat, expr], index) => ({
      refId: 'ABC'[index],
      datasource,
      expr,
      legendFormat,
    })),
  }
}

const dashboard = {
  uid: 'postern',
  title: 'Postern',
  tags: ['postern'],
  timezone: 'browser',
  schemaVersion: 41,
  version: 1,
  editable: false,
  refresh: '15s',
  time: { from: 'now-1h', to: 'now' },
  graphTooltip: 1,
  templating: { list: variables },
  annotations: { list: [] },
  panels: panels(),
}

process.stdout.write(`${JSON.stringify(dashboard, null, 2)}\n`)
