import { defineConfig } from 'vitest/config'

/** Where `.ci/run` wants the numbers as JSON. */
const resultsFile = process.env.TEST_RESULTS

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Long forms have a command each; what runs here is their short form.
    exclude: ['test/**/*.long.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    setupFiles: ['test/support/each-file.ts'],
    pool: 'forks',
    // Most tests wait for servers and time, so more of them than there are cores share one.
    maxWorkers: 4,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    teardownTimeout: 20_000,
    reporters: resultsFile ? ['default', ['json', { outputFile: resultsFile }]] : ['default'],
  },
})
