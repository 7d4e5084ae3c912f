import { problems } from '../base/problems.ts'
import type { HttpMetrics } from './metrics.ts'
import { problemCodesOf } from './openapi.ts'
import { knownMethods } from './request-record.ts'
import { methodsOf, type Route } from './route.ts'

const preflightStatuses = [
  204,
  ...(['forbidden', 'unavailable', 'internal'] as const).map((code) => problems[code].status),
]

/** Starts request counters at 0 for every answer of the contract. Other answers get a counter when they occur. */
export function startRequestsAtZero(metrics: HttpMetrics, routes: readonly Route[]): void {
  for (const route of routes) {
    const statuses = new Set([
      ...Object.keys(route.answers).map(Number),
      ...problemCodesOf(route).map((code) => problems[code].status),
    ])
    const answers = methodsOf(route).flatMap((method) =>
      [...statuses].map((status) => ({ method, status })),
    )
    // Preflights of browsers, see cors.ts.
    if (route.access === 'page') {
      for (const status of preflightStatuses) answers.push({ method: 'OPTIONS', status })
    }
    metrics.startRequestsAtZero(route.path, answers)
  }
  const { status } = problems.not_found
  metrics.startRequestsAtZero(
    'unknown',
    [...knownMethods, 'other'].map((method) => ({ method, status })),
  )
}
