/** `npm run policy`: explains the policies of a file in words, and replays recorded requests with a changed file. */
import { parseArgs } from 'node:util'
import { commandLine } from '../../base/command-line.ts'
import { parseDurationMs } from '../../base/durations.ts'
import { loadEnvFile } from '../../config/env-file.ts'
import { readPolicyFile } from '../../config/policy-file.ts'
import type { PolicyFile } from '../../config/policy-schema.ts'
import { sendersIn } from '../../config/senders-in.ts'
import { explain } from '../../rules/explain.ts'
import { policiesInForce } from '../../rules/in-force.ts'
import { priceOf } from '../../rules/price-of.ts'
import { paperwork } from '../../sms-rules/index.ts'
import { openDatabase } from '../../storage/database.ts'
import { beginReading } from '../../support/decision-log.ts'
import { replay, reportOf } from '../../support/replay.ts'
import { createSectionChecks } from '../load-config.ts'
import { databaseUrlOrStop, orUsage, stop } from './stop.ts'

const usage = `Usage:
  ${commandLine('policy', 'explain [--policy postern.yaml]')}
  ${commandLine('policy', 'paperwork [--policy postern.yaml]')}
  ${commandLine('policy', 'replay --policy new.yaml [--since 24h] [--json]')}

explain prints in words what each rule of a policy file does.
paperwork prints what carriers want registered in the countries of the routes: filed, missing, and where to file it.
replay decides the recorded requests again with the policies of another file, and prints which decisions would
change. It only reads PostgreSQL (DATABASE_URL).
Without --policy, explain and paperwork read POSTERN_CONFIG or ./postern.yaml.`

const statementTimeoutMs = 60_000

loadEnvFile()
const { command, policy, sinceMs, isJson } = orUsage(usage, readArguments)
const file = await readFile(policy ?? (process.env.POSTERN_CONFIG || './postern.yaml'))
const inForce = policiesInForce({ ...file, testing: { recipients: [] } })
if (command === 'explain') {
  process.stdout.write(explain(inForce.policies))
} else if (command === 'paperwork') {
  const ways = file.routes.sms.flatMap(({ match, use }) =>
    use.flatMap(({ provider }) => {
      const { settings = {} } = file.providers[provider] ?? {}
      const { senders } = sendersIn(settings, match.country) ?? sendersIn({}, match.country) ?? {}
      return (senders ?? []).map(({ country, sender }) => ({
        ...{ provider, sender, countries: [country] },
      }))
    }),
  )
  console.log(paperwork(ways, file.senders) || 'No route of SMS has match.country.')
} else {
  process.stdout.write(await replayRecorded())
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
  if (!['explain', 'paperwork', 'replay'].includes(command)) {
    throw new Error(`policy has no command "${command}".`)
  }
  if (more.length > 0) throw new Error(`${command} takes no "${more[0]}". Options begin with --.`)
  if (command !== 'replay' && (since !== undefined || json !== undefined)) {
    throw new Error('--since and --json are options of replay.')
  }
  if (command === 'replay' && policy === undefined) {
    throw new Error('replay needs the changed file: --policy new.yaml.')
  }
  if (sinceMs === undefined) stop(`"${since}" is not a duration such as 90m, 24h or 7d.`)
  return { command, policy, sinceMs, isJson: json ?? false }
}

async function readFile(path: string): Promise<PolicyFile> {
  const checks = { ...createSectionChecks(), leavesOutCarriers: command === 'paperwork' }
  const read = await readPolicyFile(path, process.env, checks)
  return read.ok ? read.file : stop(read.problems.join('\n'))
}

async function replayRecorded(): Promise<string> {
  const database = openDatabase(databaseUrlOrStop(), { maxConnections: 1, onError: () => {} })
  const windows = Object.values(inForce.policies).flatMap((rules) =>
    rules.flatMap((rule) => rule.windows),
  )
  const countedMs = Math.max(0, ...windows.map(({ windowMs = 0 }) => windowMs))
  try {
    return await database.onOwnConnection({ statementTimeoutMs }, async (client) => {
      const { fromMs, oneOf, unnamed, decisions } = await beginReading(client, sinceMs, countedMs)
      const { policies, raw } = inForce
      const replayed = await replay({
        ...{ decisions, policies, raw, sinceMs: fromMs },
        priceOf: (channel, country) => priceOf(file.prices, channel, country),
      })
      const facts = { ...replayed, oneOf, unnamed }
      if (isJson) return `${JSON.stringify(facts, null, 2)}\n`
      return reportOf(replayed, notesOf(facts))
    })
  } catch (error) {
    return stop(`Failed: ${(error as Error).message}`)
  } finally {
    await database.close()
  }
}

function notesOf({
  missing,
  oneOf,
  unnamed,
}: {
  missing: string[]
  oneOf: number
  unnamed: number
}) {
  return [
    ...missing.map((policy) => `Requests by ${policy} are left out: the file has no such policy.`),
    ...(oneOf === 1
      ? []
      : [
          `This is a sample: 1 of ${oneOf} recipients, because there were too many to record. Rules that count several recipients ` +
            'together (by address, prefix, country, app) are underestimated.',
        ]),
    ...(unnamed === 0
      ? []
      : [
          `${unnamed} refusals and checks were only counted, because there were too many. They are left out.`,
        ]),
  ]
}
