/**
 * Makes the metrics of one process, and the text of a scrape. Each room names its own metrics.
 *
 * Label values come from closed sets only (routes, rules, providers, states). No recipient, address, IP or path can make
 * a new series. Every counter exists from the first scrape at 0, for every value of its labels (I28). Prometheus sees an
 * increase only between two samples. If a series appeared with its first events, alerts would miss them.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type Meter = ReturnType<typeof createMeter>

/** The values of each label. Any other value is a type error. */
type LabelSets = Readonly<Record<string, readonly string[]>>
type LabelsOf<Sets extends LabelSets> = { readonly [Name in keyof Sets]: Sets[Name][number] }

/** The longest time of a timer of Node. */
const longestTimeoutMs = 2 ** 31 - 1

/** `processName` is a label of every series. */
export function createMeter(processName: string) {
  const registry = new Registry()
  registry.setDefaultLabels({ process: processName })
  collectProcessMetrics(registry)
  const registers = [registry]

  function counter<const Sets extends LabelSets>(name: string, help: string, sets: Sets) {
    const made = new Counter({ name, help, labelNames: Object.keys(sets), registers })
    for (const labels of combinations(sets)) made.inc(labels, 0)
    return {
      inc: (labels: LabelsOf<Sets>, by = 1) => made.inc(labels, by),
      get: () => made.get(),
    }
  }

  function histogram<const Sets extends LabelSets>(
    name: string,
    help: string,
    buckets: readonly number[],
    sets: Sets,
  ) {
    const labelNames = Object.keys(sets)
    const made = new Histogram({ name, help, labelNames, buckets: [...buckets], registers })
    for (const labels of combinations(sets)) made.zero(labels)
    return {
      observe: (labels: LabelsOf<Sets>, value: number) => made.observe(labels, value),
      zero: (labels: LabelsOf<Sets>) => made.zero(labels),
    }
  }

  const gauge = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({ name, help, labelNames, registers })

  /**
   * A gauge of shared state (the queue, the tables). Every process measures it at each scrape, so all report the same
   * value. NaN while the measurement fails.
   */
  function measured<const Sets extends LabelSets>(name: string, help: string, sets: Sets) {
    const labelNames = Object.keys(sets)
    const made = gauge(name, help, labelNames)
    return {
      async measure(
        read: () => Promise<readonly (LabelsOf<Sets> & { value: number })[]>,
      ): Promise<void> {
        const samples = await read().catch(() => [])
        // Not before the read: another scrape may read the gauge meanwhile.
        for (const labels of combinations(sets)) made.set(labels, Number.NaN)
        for (const sample of samples) {
          made.set(
            Object.fromEntries(labelNames.map((label) => [label, sample[label]])),
            sample.value,
          )
        }
      },
    }
  }

  return { registry, counter, histogram, gauge, measured }
}

/**
 * Metrics that the client collects of every Node process. The two metrics of the event loop's utilization are left out.
 * The event loop's lag shows the same, and these two cost 29 series and a timer of 100 ms that never ends.
 */
function collectProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({
    register: registry,
    prefix: 'postern_',
    eventLoopUtilizationTimeout: longestTimeoutMs,
  })
  registry.removeSingleMetric('postern_nodejs_eventloop_utilization_summary')
  registry.removeSingleMetric('postern_nodejs_eventloop_utilization_histogram')
}

/** Every combination of label values; one empty combination without labels. */
function combinations<Sets extends LabelSets>(sets: Sets): LabelsOf<Sets>[] {
  let all: Record<string, string>[] = [{}]
  for (const [name, values] of Object.entries(sets)) {
    all = all.flatMap((labels) => values.map((value) => ({ ...labels, [name]: value })))
  }
  return all as LabelsOf<Sets>[]
}
