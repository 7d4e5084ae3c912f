/**
 * A provider that accepts messages and delivers none: the time until it is noticed, and by whom. A morning is played by the
 * day's clock, then the provider is silent. The service's metrics are read every ten minutes of the day. By them, promtool
 * finds the first of the service's own alerts that fires. Without alerts, it is not noticed.
 */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { findOnPath } from '../../src/dev/find-or-install.ts'
import { farApart } from './day.ts'
import { type Adapter, type Checked, type Sent, type Service, solvedAnswer } from './service.ts'
import { until } from './until.ts'
import { openDayWorld } from './world.ts'

const stepMinutes = 10
/** Steps before and in the silence. */
const [usualSteps, silentSteps] = [9 * 6, 3 * 6]
/** 42 an hour. */
const peoplePerStep = 7
/** Longer than the pauses between the passes of a service's own work, which go by real time. */
const passMs = 5_000

export async function timeUntilNoticed(adapter: Adapter): Promise<string> {
  if (!findOnPath('promtool')) return '–'
  const world = await openDayWorld()
  const service = await adapter.start(world)
  const series = new Map<string, string[]>()
  try {
    if (!service.watch) return 'no alert'
    for (let step = 0; step < usualSteps + silentSteps; step++) {
      world.clock.setTime(step * stepMinutes * 60_000)
      if (step === usualSteps) await world.provider.behave('is silent')
      const people = Array.from({ length: peoplePerStep }, (_, index) =>
        visit(service, step * peoplePerStep + index, step < usualSteps),
      )
      await Promise.all(people)
      await until(async () => (await service.isQuiet?.()) ?? true, 60_000)
      if (step >= usualSteps) await sleep(passMs)
      read(await service.watch.metrics(), step)
    }
    return await firstAlert(service.watch.rules)
  } finally {
    await service.close()
    await world.close()
  }

  async function visit(service: Service, person: number, types: boolean): Promise<void> {
    const who = {
      channel: 'sms',
      to: farApart(person),
      ip: `77.${person >> 8}.${person & 255}.1`,
    } as const
    await solvedAnswer<Sent>(await service.send(who))
    if (!types) return
    await until(() => world.provider.messagesTo(who.to).length > 0, 60_000)
    const code = world.provider.messagesTo(who.to)[0]?.code ?? ''
    await solvedAnswer<Checked>(await service.check({ ...who, code }))
  }

  function read(texts: readonly string[], step: number): void {
    for (const line of texts.join('\n').split('\n')) {
      const [, name, value = ''] = /^([a-zA-Z_]\w*(?:\{.*\})?) (\S+)$/.exec(line) ?? []
      if (!name) continue
      const values = series.get(name) ?? Array<string>(step).fill('_')
      series.set(name, values)
      values.push(value === 'NaN' ? '_' : value)
    }
  }

  async function firstAlert(rules: string): Promise<string> {
    const text = readFileSync(rules, 'utf8')
    const alerts = [...text.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name)
    const minutes = Array.from(
      { length: silentSteps + 1 },
      (_, index) => (usualSteps - 1 + index) * stepMinutes,
    )
    const file = join(world.folder, 'silence.yml')
    const noAlerts = alerts.flatMap((alertname) =>
      minutes.map((minute) => ({ eval_time: `${minute}m`, alertname, exp_alerts: [] })),
    )
    const input = [...series].filter(([name]) => text.includes(name.replace(/\{.*/, '')))
    const interval = `${stepMinutes}m`
    writeFileSync(
      file,
      stringify({
        rule_files: [rules],
        evaluation_interval: interval,
        tests: [
          {
            interval,
            input_series: input.map(([series, values]) => ({ series, values: values.join(' ') })),
            alert_rule_test: noAlerts,
          },
        ],
      }),
    )
    // Each alert that fires is a failed case.
    const output = await new Promise<string>((done) =>
      execFile(
        'promtool',
        ['test', 'rules', file],
        { maxBuffer: 2 ** 28 },
        (_error, stdout, stderr) => done(stdout + stderr),
      ),
    )
    const fired = [...output.matchAll(/alertname: (\w+), time: (\w+),/g)].map(
      ([, alert = '', time = '']) => {
        const [, hours = 0, minutes = 0] = /^(?:(\d+)h)?(?:(\d+)m)?/.exec(time) ?? []
        return {
          alert,
          afterMinutes: Number(hours) * 60 + Number(minutes) - usualSteps * stepMinutes,
        }
      },
    )
    const before = fired.filter(({ afterMinutes }) => afterMinutes < 0).map(({ alert }) => alert)
    const since = fired.filter(({ alert }) => !before.includes(alert))
    const [first] = since.toSorted((a, b) => a.afterMinutes - b.afterMinutes)
    return first ? `alert ${first.alert}, ${first.afterMinutes} min` : 'no alert'
  }
}
