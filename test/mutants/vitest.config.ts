import { defineConfig } from 'vitest/config'

/**
 * What `npm run mutants` runs on each mutant. Servers come ready by REDIS_URL and DATABASE_URL. Waits are shorter
 * than the suite's, as with TEST_WAIT_MS: most of what makes a test wait here is the mutant that it is meant to notice.
 */
export default defineConfig({
  test: {
    include: JSON.parse(process.env.MUTANTS_TESTS ?? '[]') as string[],
    // Of the slow tests, only the code field's run: they are all that reaches it. The last measures the built scripts,
    // which hold all mutants at once here.
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
