/** `npm run policy`: explains the policies of a file in words, and replays recorded requests with a changed file. */
import { parseArgs } from 'node:util'
import { commandLine } from '../base/command-line.ts'
import { parseDurationMs } from '../base/durations.ts'
import { loadEnvFile } from '../config/env-file.ts'
import { redisUrl } from '../config/environment.ts'
import { readPolicyFile } from '../config/policy-file.ts'
import type { PolicyFile } from '../config/policy-schema.ts'
import { createSectionChecks } from '../main/load-config.ts'
import { defaultKeyPrefix } from '../main/shared.ts'
import { explain } from '../rules/explain.ts'
import { policiesInForce } from '../rules/in-force.ts'
import { priceOf } from '../rules/price-of.ts'
import { connectRedis, firstTry } from '../storage/redis.ts'
import { readSample } from '../support/recorded.ts'
import { type Replayed, replay } from '../support/replay.ts'
import { reportOf } from '../support/report.ts'
import { orUsage, stop } from './stop.ts'

const usage = `Usage:
  ${commandLine('policy', 'explain [--policy postern.yaml]')}
  ${commandLine('policy', 'replay --policy new.yaml [--since 24h] [--json]')}

explain prints in words what each rule of a policy file does.
replay decides the recorded requests again with the policies of another file, and prints which decisions would
change. It only reads Redis (REDIS_URL).
Without --policy, explain reads POSTERN_CONFIG or ./postern.yaml.`

loadEnvFile()
const { command, policy, sinceMs, isJson } = orUsage(usage, readArguments)
const file = await readFile(policy ?? (process.env.POSTERN_CONFIG || './postern.yaml'))
const inForce = policiesInForce({ ...file, testing: { recipients: [] } })
if (command === 'explain') {
  process.stdout.write(explain(inForce.policies))
} else {
  const replayed = await replayRecorded()
  process.stdout.write(isJson ? `${JSON.stringify(replayed, null, 2)}\n` : reportOf(replayed))
}

function readArguments() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      policy: { type: 'string' },
      since: { type: 'string' },
      json: { type: 'boolean' },
    },
  })
  const { policy, since, json } = values
  const [command = '', ...more] = positionals
  const sinceMs = parseDurationMs(since ?? '24h')
  if (command === '') stop(usage)
  if (command !== 'explain' && command !== 'replay') {
    throw new Error(`policy has no command "${command}".`)
  }
  if (more.length > 0) throw new Error(`${command} takes no "${more[0]}". Options begin with --.`)
  if (command === 'explain' && (since !== undefined || json !== undefined)) {
    throw new Error('--since and --json are options of replay.')
  }
  if (command === 'replay' && policy === undefined) {
    throw new Error('replay needs the changed file: --policy new.yaml.')
  }
  if (sinceMs === undefined) stop(`"${since}" is not a duration such as 90m, 24h or 7d.`)
  return { command, policy, sinceMs, isJson: json ?? false }
}

async function readFile(path: string): Promise<PolicyFile> {
  const read = await readPolicyFile(path, process.env, createSectionChecks())
  return read.ok ? read.file : stop(read.problems.join('\n'))
}

async function replayRecorded(): Promise<Replayed> {
  const url = process.env.REDIS_URL
  if (!url) return stop('REDIS_URL is not set, e.g. redis://localhost:6379')
  const parsed = redisUrl.safeParse(url)
  if (!parsed.success) return stop(`REDIS_URL ${parsed.error.issues[0]?.message}`)
  const redis = connectRedis(url, 'command', () => {})
  try {
    await firstTry(redis)
    const { records, nowMs } = await readSample(redis, defaultKeyPrefix)
    return await replay({
      records,
      policies: inForce.raw,
      sinceMs: nowMs - sinceMs,
      priceOf: (channel, country) => priceOf(file.prices, channel, country),
    })
  } catch (error) {
    return stop(`Failed: ${(error as Error).message}`)
  } finally {
    redis.disconnect()
  }
}
