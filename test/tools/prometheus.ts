import { execFile } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { stringify } from 'yaml'
import { findOrInstall } from '../../src/dev/find-or-install.ts'
import {
  findFreePort,
  readIfThere,
  startServerProcess,
  untilReady,
} from '../../src/dev/server-process.ts'
import { releaseLater } from './release.ts'

const advice =
  'No prometheus and promtool found: install them (macOS: brew install prometheus; Fedora: dnf install prometheus; Alpine: apk add prometheus; Debian, Ubuntu: apt-get install prometheus)'

const execFileAsync = promisify(execFile)

const find = (program: 'prometheus' | 'promtool') => findOrInstall([program], 'prometheus', advice)

/**
 * Its output. Rejects if it finds a fault. It makes its garbage within seconds and ends, so it needs no care for memory.
 * Its time is bounded by the test's.
 */
export async function promtool(cwd: string, ...args: string[]): Promise<string> {
  const running = execFileAsync(find('promtool'), args, {
    cwd,
    env: { ...process.env, GOGC: '800' },
  })
  releaseLater(() => void running.child.kill('SIGKILL'))
  return (await running).stdout
}

export interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: number
}

/** A series over time: seconds of the epoch, and values. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>
  readonly points: readonly (readonly [atS: number, value: number])[]
}

export interface TestPrometheus {
  /** The answer to an instant query. Throws Prometheus' error. */
  query(expr: string): Promise<Sample[]>
  /** The same for each second of a period. */
  queryRange(expr: string, fromS: number, toS: number): Promise<Series[]>
  targets(): Promise<{ labels: Record<string, string>; scrapeUrl: string }[]>
  /** The addresses that get its alerts. */
  alertmanagers(): Promise<string[]>
}

/** A real Prometheus with this configuration. */
export async function startPrometheus(
  config: Readonly<Record<string, unknown>>,
): Promise<TestPrometheus> {
  const program = find('prometheus')
  const dataDir = mkdtempSync(join(inject('runFolder'), 'prometheus-'))
  const configFile = join(dataDir, 'prometheus.yml')
  const logFile = join(dataDir, 'prometheus.log')
  writeFileSync(configFile, stringify(config))
  for (let triesLeft = 5; ; triesLeft -= 1) {
    const address = `127.0.0.1:${await findFreePort()}`
    const server = startServerProcess(
      [
        program,
        ...[`--config.file=${configFile}`, `--storage.tsdb.path=${join(dataDir, 'data')}`],
        `--web.listen-address=${address}`,
      ],
      logFile,
      'SIGTERM',
    )
    // A later run recognises it by this name, and ends it if this run is killed.
    writeFileSync(join(dataDir, 'prometheus.pid'), String(server.pid))
    const get = async (path: string) => {
      const response = await fetch(`http://${address}${path}`, {
        headers: { connection: 'close' },
        signal: AbortSignal.timeout(10_000),
      })
      return { isOk: response.ok, text: await response.text() }
    }
    const isReady = await untilReady(server, () =>
      get('/-/ready').then(
        ({ isOk }) => isOk,
        () => false,
      ),
    )
    if (!isReady) {
      await server.kill()
      if (triesLeft > 0 && /in use/.test(readIfThere(logFile))) continue
      throw new Error(`Prometheus did not start; its log:\n${readIfThere(logFile).slice(-2_000)}`)
    }
    releaseLater(() => server.kill())
    const api = async (path: string) => {
      const { status, data, error } = JSON.parse((await get(`/api/v1/${path}`)).text)
      if (status !== 'success') throw new Error(`${error}: ${path}`)
      return data
    }
    return {
      async query(expr) {
        const { result } = await api(`query?query=${encodeURIComponent(expr)}`)
        return result.map(({ metric, value }: { metric: object; value: [number, string] }) => ({
          metric,
          value: Number(value[1]),
        }))
      },
      async queryRange(expr, fromS, toS) {
        const range = `query=${encodeURIComponent(expr)}&start=${fromS}&end=${toS}&step=1`
        const { result } = await api(`query_range?${range}`)
        type Raw = { metric: Record<string, string>; values: [number, string][] }
        return result.map(({ metric, values }: Raw) => ({
          metric,
          points: values.map(([atS, value]) => [atS, Number(value)] as const),
        }))
      },
      async targets() {
        return (await api('targets?state=active')).activeTargets
      },
      async alertmanagers() {
        const { activeAlertmanagers } = await api('alertmanagers')
        return activeAlertmanagers.map(({ url }: { url: string }) => url)
      },
    }
  }
}
