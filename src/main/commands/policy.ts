/** `npm run policy`: explains the policies of a file in words, and replays recorded requests with a changed file. */
import { commandLine } from '../../base/command-line.ts'
import { parseDurationMs } from '../../base/durations.ts'
import { loadEnvFile } from '../../config/env-file.ts'
import { readPolicyFile } from '../../config/policy-file.ts'
import type { PolicyFile } from '../../config/policy-schema.ts'
import { sendersOfRoutes } from '../../config/senders-in.ts'
import { explain } from '../../rules/explain.ts'
import { policiesInForce } from '../../rules/policies-in-force.ts'
import { priceOf } from '../../rules/price-of.ts'
import { paperwork } from '../../sms-rules/index.ts'
import { openDatabase } from '../../storage/database.ts'
import { beginReading } from '../../support/decision-log.ts'
import { replay, reportOf } from '../../support/replay.ts'
import { databaseUrlOrStop, readCommand, stop } from './stop.ts'

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
const { command, values } = readCommand(
  'policy',
  usage,
  { policy: { type: 'string' }, since: { type: 'string' }, json: { type: 'boolean' } },
  {
    explain: { options: ['policy'] },
    paperwork: { options: ['policy'] },
    replay: { options: ['policy', 'since', 'json'] },
  },
)
const { policy, since = '24h', json: isJson = false } = values
const sinceMs =
  parseDurationMs(since) ?? stop(`"${since}" is not a duration such as 90m, 24h or 7d.`)
if (command === 'replay' && policy === undefined)
  stop(`replay needs the changed file: --policy new.yaml.\n\n${usage}`)
const file = await readFile(policy ?? (process.env.POSTERN_CONFIG || './postern.yaml'))
const inForce = policiesInForce({ ...file, testing: { recipients: [] } })
if (command === 'explain') {
  process.stdout.write(explain(inForce.policies))
} else if (command === 'paperwork') {
  const ways = sendersOfRoutes(file)
  console.log(paperwork(ways, file.senders) || 'No route of SMS has match.country.')
} else {
  process.stdout.write(await replayRecorded())
}

async function readFile(path: string): Promise<PolicyFile> {
  // A mistake in the arguments, and --help, need not wait for every provider to load.
  const { createSectionChecks } = await import('../load-config.ts')
  const checks = { ...createSectionChecks(), leavesOutCarriers: command === 'paperwork' }
  const read = await readPolicyFile(path, process.env, checks)
  return read.ok ? read.file : stop(read.problems.join('\n'))
}

async function replayRecorded(): Promise<string> {
  const database = openDatabase(databaseUrlOrStop(), { maxConnections: 1, onError: () => {} })
  const rules = Object.values(inForce.policies).flat()
  const windows = rules.flatMap((rule) => rule.windows)
  const countedMs = Math.max(0, ...windows.map(({ windowMs = 0 }) => windowMs))
  try {
    return await database.onOwnConnection({ statementTimeoutMs }, async (client) => {
      const { fromMs, oneOf, unnamed, decisions } = await beginReading(client, sinceMs, countedMs)
      const replayed = await replay({
        ...{ ...inForce, decisions, sinceMs: fromMs },
        priceOf: (channel, country) => priceOf(file.prices, channel, country),
      })
      const facts = { ...replayed, oneOf, unnamed }
      return isJson ? `${JSON.stringify(facts, null, 2)}\n` : reportOf(facts)
    })
  } catch (error) {
    return stop(`Failed: ${(error as Error).message}`)
  } finally {
    await database.close()
  }
}
