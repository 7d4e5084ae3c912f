/**
 * Do the tests notice a bug? Stryker makes small bugs in one room, one after the other. For each it runs the room's tests
 * that reach the changed line:
 *
 *     npm run mutants -- captcha                                 a room
 *     npm run mutants -- captcha src/captcha/check.ts:20-40      a file of it, or lines of a file
 *     npm run mutants -- captcha src/captcha/check.ts test/captcha/check.test.ts    with these tests only
 *     npm run mutants -- captcha --sample 120                    120 random mutants; --seed 7 draws the same ones again
 *     npm run mutants -- lua/codes-N.lua                         a script, with the tests of the room that loads it
 *     npm run mutants -- lua/codes-N.lua test/captcha/co*.ts     a script, with these tests
 *
 * Results stay in `.postern/mutants`, also after a stopped run. The next run tries only what is new.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { makeDataFolder, removeRunFolder } from '../tools/run-folder.ts'
import { startWorldPostgres, startWorldRedis } from '../tools/world.ts'
import { roomOfScript, tryLuaMutants } from './lua.ts'

/** Tests in other folders that test promises of a room, beside `test/ROOM`. */
const testsElsewhere: Readonly<Record<string, readonly string[]>> = {
  base: [
    'test/access/key-store.test.ts',
    'test/captcha/{challenges,code-store,send}.test.ts',
    'test/main/commands/{doctor,examine}.test.ts',
    'test/console/story.test.ts',
    'test/contract/metrics.test.ts',
    'test/crypto/secrets.test.ts',
    'test/delivery/{deliver,resilience,slots}.test.ts',
    'test/http/{admin,admin-server,bad-body,captchas,idempotency,in-process,notices,problem,receipts,stopping}.test.ts',
    'test/limiter/release.test.ts',
    'test/main/{ready,run,stopping}.test.ts',
    'test/notice/{producer,receipts}.test.ts',
    'test/providers/{examine-providers,kinds,smtp,twilio}.test.ts',
    'test/upkeep/event-dispatcher.test.ts',
  ],
  access: [
    'test/main/commands/{examine,keys}.test.ts',
    'test/http/{cors,publishable-keys}.test.ts',
  ],
  captcha: ['test/http/{calls-for-plugins,captchas,challenges}.test.ts'],
  config: [
    'test/main/commands/{examine,policy}.test.ts',
    'test/main/{load-config,plugins}.test.ts',
  ],
  delivery: [
    'test/main/commands/examine.test.ts',
    'test/console/story.test.ts',
    'test/flow/main-job.test.ts',
    'test/http/{admin,in-process,notices,receipts,stopping,test-recipients}.test.ts',
    'test/main/{run,stopping}.test.ts',
    'test/notice/{receipts,templates}.test.ts',
    'test/providers/{acme,kinds,sandbox}.test.ts',
    'test/upkeep/reconcile.test.ts',
  ],
  http: [
    'test/compat/{camara,doors,hooks,twilio-verify}.test.ts',
    'test/console/door.test.ts',
    'test/contract/openapi.test.ts',
    'test/main/{plugins,ready,run,stopping}.test.ts',
  ],
  main: [
    'test/config/refused-recipients.test.ts',
    'test/console/door.test.ts',
    'test/flow/{main-job,mistyped}.test.ts',
    'test/http/{admin,attempts,calls-for-plugins,in-process,readiness,receipts,router}.test.ts',
    'test/providers/dkim.test.ts',
    'test/rules/prices.test.ts',
    'test/upkeep/retention.test.ts',
  ],
  notice: [
    'test/console/{lists,story}.test.ts',
    'test/delivery/{record,resolve-unknown,retry}.test.ts',
    'test/http/{calls-for-plugins,check-mx,idempotency,notices,recipients-scenes}.test.ts',
    'test/upkeep/{reconcile,retention}.test.ts',
  ],
  rules: [
    'test/captcha/{check-captcha,refund,send}.test.ts',
    'test/config/policy-file.test.ts',
    'test/contract/policies.test.ts',
    'test/http/{attempts,test-recipients}.test.ts',
    'test/main/load-config.test.ts',
    'test/notice/test-policies.test.ts',
    'test/support/recorder.test.ts',
  ],
  storage: [
    'test/access/key-store.test.ts',
    'test/console/lists.test.ts',
    'test/http/{attempts,protocol,recipients}.test.ts',
    'test/limiter/cluster.test.ts',
    'test/main/**/*.test.ts',
    'test/notice/{create,plans,producer,store}.test.ts',
    'test/upkeep/{reconcile,retention}.test.ts',
  ],
  support: [
    'test/captcha/{check-captcha,pressure,refund,send}.test.ts',
    'test/main/commands/policy.test.ts',
    'test/console/*.test.ts',
    'test/http/{attempts,limits,privacy,recipients,recipients-away,recipients-scenes}.test.ts',
  ],
  upkeep: [
    'test/http/idempotency.test.ts',
    'test/main/{run,stopping}.test.ts',
    'test/notice/{event-outbox,plans,receipts}.test.ts',
  ],
}

/** Generated files, which get no mutants. */
const made = ['**/generated/**', '**/dist/**']

const { values: drawn, positionals } = parseArgs({
  allowPositionals: true,
  options: { sample: { type: 'string' }, seed: { type: 'string' } },
})
const [what = '', ...parts] = positionals
const isScript = what.endsWith('.lua')
const room = isScript ? roomOfScript(what) : what
const testsGiven = parts.filter((part) => part.startsWith('test/'))
const filesGiven = parts.filter((part) => !testsGiven.includes(part))
const files =
  filesGiven.length > 0
    ? filesGiven
    : globSync(`{${room},src/${room}}/**/*.ts`, { exclude: made }).sort()
if (!room || files.length === 0) {
  console.error(
    'npm run mutants -- ROOM [FILE[:LINE-LINE] …] [TEST …] [--sample COUNT [--seed SEED]]; a room is a folder of src/, or web',
  )
  console.error('npm run mutants -- lua/SCRIPT.lua [TEST …]')
  process.exit(2)
}
const results = '.postern/mutants'
mkdirSync(results, { recursive: true })
/** Not a package of the project, because it would make every `npm ci` a third larger. */
const strykerVersion = '10.1.1'
const strykerHome = `.postern/stryker-${strykerVersion}`
const optionsFile = `${results}/${room}.options.json`

const options = {
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'test/mutants/vitest.config.ts', related: false, pool: 'forks' },
  mutate: files,
  // A changed text is no bug that a test should notice.
  mutator: { excludedMutations: ['StringLiteral'] },
  coverageAnalysis: 'perTest',
  // A mutant that runs while a file loads would cost a run of all tests.
  ignoreStatic: true,
  incremental: true,
  incrementalFile: `${results}/${room}${drawn.sample ? '.sample' : ''}.json`,
  concurrency: 1,
  timeoutMS: 20_000,
  timeoutFactor: 2,
  dryRunTimeoutMinutes: 10,
  // TypeScript 7 has no JavaScript API, which Stryker uses if it finds a tsconfig.
  tsconfigFile: 'none.json',
  disableTypeChecks: false,
  tempDirName: `${results}/tree-${room}`,
  cleanTempDir: 'always',
  ignorePatterns: ['.postern'],
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false, allowEmojis: false },
  warnings: false,
}

writeFileSync(optionsFile, JSON.stringify(options))

const folder = makeDataFolder()
process.once('exit', () => removeRunFolder(folder))
/** One of each server for all mutants, because a start takes longer than most tests. */
const [redis, postgres] = await Promise.all([startWorldRedis(folder), startWorldPostgres(folder)])
const tests =
  testsGiven.length > 0
    ? testsGiven
    : [`test/${room}/**/*.test.ts`, ...(testsElsewhere[room] ?? [])]
const env = {
  ...process.env,
  DATABASE_URL: postgres.url,
  TEST_WAIT_MS: process.env.TEST_WAIT_MS ?? '6000',
  MUTANTS_TESTS: JSON.stringify(tests),
}
if (isScript) {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  // A script that never ends stops its Redis, so each of these has a separate Redis.
  await tryLuaMutants(what, `${results}/tree-lua`, env)
  process.exit(0)
}

const program = installedStryker()
const draw = drawn.sample ? ['--import', './test/mutants/draw.ts'] : []
const command = [process.execPath, ...draw, program, 'run', optionsFile]
const stryker = spawn('nice', ['-n', '19', ...command], {
  stdio: 'inherit',
  env: {
    ...env,
    REDIS_URL: redis.url,
    MUTANTS_STRYKER: strykerHome,
    MUTANTS_SAMPLE: drawn.sample,
    MUTANTS_SEED: drawn.seed ?? `${Date.now() % 10_000}`,
  },
})
// Keeps earlier results.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => stryker.kill('SIGINT'))
}
const [status] = await once(stryker, 'exit')
process.exit(status ?? 1)

function installedStryker(): string {
  const program = `${strykerHome}/node_modules/.bin/stryker`
  if (existsSync(program)) return program
  const packages = ['core', 'vitest-runner'].map(
    (name) => `@stryker-mutator/${name}@${strykerVersion}`,
  )
  // The runner finds Postern's Vitest in a parent folder.
  const options = [
    '--prefix',
    strykerHome,
    '--no-save',
    '--legacy-peer-deps',
    '--no-audit',
    '--no-fund',
  ]
  const { status } = spawnSync('npm', ['install', ...options, ...packages], { stdio: 'inherit' })
  if (status !== 0) process.exit(1)
  return program
}
