import { createMetrics } from '../../src/main/metrics.ts'

/** The metrics of one process, with the counters of these providers at 0. */
export const testMetrics = (...providers: string[]) => createMetrics('api', providers)
