import { defineConfig } from 'vitest/config'

/**
 * The tests that `npm run mutants` runs for each mutant. Its servers are given by REDIS_URL and DATABASE_URL. Waits
 * are shorter than in the suite, as with TEST_WAIT_MS: a test mostly waits because of the mutant that it should
 * notice.
 */
export default defineConfig({
  test: {
    include: JSON.parse(process.env.MUTANTS_TESTS ?? '[]') as string[],
    // The tests of the code field are the only slow tests that run, because nothing else reaches it. The last one is
    // left out: it measures the built scripts, and here they contain all mutants.
    exclude: [
      'test/!(web)/**/*.slow.test.ts',
      'test/web/engines.slow.test.ts',
      'test/web/docs.test.ts',
    ],
    provide: { mountAt: '' },
    globalSetup: ['test/tools/global-setup.ts'],
    setupFiles: ['test/tools/each-file.ts', 'test/mutants/setup.ts'],
    pool: 'forks',
    isolate: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: Number(process.env.TEST_WAIT_MS) } },
    teardownTimeout: 20_000,
  },
})
