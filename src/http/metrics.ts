import type { Meter } from '../base/meter.ts'

export type HttpMetrics = ReturnType<typeof httpMetrics>

const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export function httpMetrics({ counter, gauge, histogram }: Meter) {
  const labels = { route: [] as string[] }
  const requests = counter(
    'postern_http_requests_total',
    'Requests answered, by route, method and status.',
    { ...labels, method: [] as string[], status: [] as string[] },
  )
  const shed = counter(
    'postern_shed_total',
    'Requests answered 503 because too many of their kind were under way. No server failed.',
    labels,
  )
  const requestSeconds = histogram(
    'postern_http_request_duration_seconds',
    'Time from the first byte of a request to its answer, by route.',
    buckets,
    labels,
  )
  return {
    ready: gauge(
      'postern_ready',
      '1 while this process is ready, 0 while /readyz reports a reason.',
    ),
    requests,
    shed,
    requestSeconds,
    waitSeconds: histogram(
      'postern_http_wait_seconds',
      'Time that a request with a key, or a call in process, waited at its socket and for its turn.',
      buckets,
      {},
    ),
    refusalSeconds: histogram(
      'postern_refusal_duration_seconds',
      'Time from the first byte of a request to its refusal by a limit or a lock.',
      buckets,
      {},
    ),
    /** Starts the counters of a route at 0, one per possible answer. */
    startRequestsAtZero(route: string, answers: readonly { method: string; status: number }[]) {
      requestSeconds.zero({ route })
      shed.inc({ route }, 0)
      for (const { method, status } of answers) {
        requests.inc({ route, method, status: String(status) }, 0)
      }
    },
  }
}
