/** The metrics of all rooms. A test compares docs/metrics.md and the Grafana dashboard with them. */
import { logMetrics } from '../base/log.ts'
import { createMeter } from '../base/meter.ts'
import { captchaMetrics } from '../captcha/metrics.ts'
import { signInMetrics } from '../console/sign-in.ts'
import { deliveryMetrics } from '../delivery/metrics.ts'
import { httpMetrics } from '../http/metrics.ts'
import { noticeMetrics } from '../notice/metrics.ts'
import { rulesMetrics } from '../rules/metrics.ts'
import { recordMetrics } from '../support/recorder.ts'
import { upkeepMetrics } from '../upkeep/metrics.ts'

export type ProcessName = 'api' | 'worker' | 'demo' | 'embedded'
export type Metrics = ReturnType<typeof createMetrics>

/** `providers`: the names under `providers:` in the policy file. */
export function createMetrics(process: ProcessName, providers: readonly string[]) {
  const meter = createMeter(process)
  return {
    registry: meter.registry,
    ...logMetrics(meter),
    ...httpMetrics(meter),
    ...rulesMetrics(meter),
    ...captchaMetrics(meter),
    ...noticeMetrics(meter, providers),
    ...deliveryMetrics(meter, providers),
    ...upkeepMetrics(meter),
    ...recordMetrics(meter),
    ...signInMetrics(meter),
  }
}
