import { eventTypes } from '../base/event-types.ts'
import type { Meter } from '../base/meter.ts'

export type UpkeepMetrics = ReturnType<typeof upkeepMetrics>

export const upkeepMetrics = ({ counter }: Meter) => ({
  reconciled: counter(
    'postern_reconciled_total',
    'Notices without a job that were put back on the queue.',
    {},
  ),
  events: counter(
    'postern_events_total',
    'Attempts to send an event to its receiver, by outcome: taken, failed, given_up.',
    { type: eventTypes, outcome: ['taken', 'failed', 'given_up'] },
  ),
})
