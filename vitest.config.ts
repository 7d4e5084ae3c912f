import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Where `.ci/run` wants the numbers as JSON. */
const resultsFile = process.env.TEST_RESULTS

const faults = 'test/faults/**/*.test.ts'
/** They install packages, need real time to pass, or draw thousands of cases: `npm run check` waits for them. */
const slow = 'test/**/*.slow.test.ts'
/**
 * Once more with the router mounted in a foreign Express app: what could depend on its paths, its parsers and its other
 * routes. The story of test/worlds makes the other calls in such apps.
 */
const mounted = [
  'bad-body',
  'browser-script',
  'captchas',
  'openapi',
  'publishable-keys',
  'receipts',
].map((name) => `test/http/${name}.test.ts`)
/** They build the documentation site, and watch a minute of load: only `npm run test:docs` runs them. */
const site = ['test/docs/site.test.ts', 'test/docs/panels.test.ts']
/** Its length is a setting: only `npm run chaos` runs it. */
const chaos = 'test/faults/chaos.test.ts'
/** It installs Next.js: only `npm run test:examples` runs it. */
const big = ['test/examples/next.test.ts']

/**
 * A run without memory of an earlier one begins with the largest files, and the longest are not large. Begun
 * last, one of them would go on alone.
 */
const longest = [
  'main/ready',
  'main/run',
  'flow/every-await',
  'flow/mistyped',
  'delivery/deliver',
  'limiter/redis-away',
  'delivery/unknown',
  'upkeep/retention',
  'main/commands/policy',
  'main/commands/keys',
  'console/today',
  'upkeep/events',
  'limiter/three-engines.slow',
  'http/random-requests.slow',
  'http/keyless.slow',
  'limiter/package.slow',
  'contract/package.slow',
  'contract/deployment.slow',
  'web/postern-code.slow',
  'worlds/story.slow',
  'delivery/resilience.slow',
  'contract/openapi-client.slow',
  'flow/guessing.slow',
  'prometheus/alerts-and-panels.slow',
  'delivery/far-ends-misbehave.slow',
  'upkeep/event-dispatcher.slow',
  'flow/late-answers.slow',
  'main/stopping.slow',
  'upkeep/rows-bench.slow',
  'faults/processes',
  'faults/redis',
  'faults/far-end',
  'faults/postgresql',
  'faults/upgrade',
  'faults/rolling',
  'faults/mail-servers',
  'faults/quota',
].map((name) => `/test/${name}.test.ts`)

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const first = longest.flatMap((end) => sorted.filter(({ moduleId }) => moduleId.endsWith(end)))
    return [...new Set([...first, ...sorted])]
  }
}

/**
 * Most files wait for servers and for time: with five of them, two cores had a third of their time left. A process takes
 * one file after the other: loading everything anew for each took a third of the processor time.
 */
const overlapping = { maxWorkers: 6, isolate: false, sequence: { groupOrder: 1 } }

export default defineConfig({
  test: {
    provide: { mountAt: '' },
    globalSetup: ['test/tools/global-setup.ts'],
    setupFiles: ['test/tools/each-file.ts'],
    pool: 'forks',
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // As long as a busy machine may need.
    expect: { poll: { timeout: 30_000 } },
    teardownTimeout: 20_000,
    sequence: { sequencer: LongestFirst },
    reporters: resultsFile ? ['default', ['json', { outputFile: resultsFile }]] : ['default'],
    projects: [
      {
        extends: true,
        test: {
          name: 'rooms',
          include: ['test/**/*.test.ts'],
          exclude: [slow, faults, ...site, ...big],
          ...overlapping,
        },
      },
      { extends: true, test: { name: 'slow', include: [slow], ...overlapping } },
      {
        extends: true,
        test: { name: 'mounted', include: mounted, provide: { mountAt: '/otp' }, ...overlapping },
      },
      {
        extends: true,
        test: {
          name: 'faults',
          include: [faults],
          exclude: [chaos],
          // Each is a load on several processes with answers due in time, and waits for most of its own.
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      { extends: true, test: { name: 'site', include: site, sequence: { groupOrder: 4 } } },
      {
        extends: true,
        test: {
          name: 'examples',
          include: big,
          testTimeout: 400_000,
          sequence: { groupOrder: 5 },
        },
      },
      {
        extends: true,
        test: { name: 'chaos', include: [chaos], sequence: { groupOrder: 3 } },
      },
    ],
  },
})
