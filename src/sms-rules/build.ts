/** Builds the package `postern-sms-rules`: a bundle for `import` and one for `require`, each with the data as JSON. */
import { copyFileSync } from 'node:fs'
import { build, type Plugin } from 'rolldown'
import { countries, rulesOf } from './data.ts'
import { countryRules } from './schema.ts'

const data = Object.fromEntries(
  countries().map((country) => [country, countryRules.parse(rulesOf(country))]),
)

const inlineData: Plugin = {
  name: 'inline-data',
  load(id) {
    if (!id.endsWith('sms-rules/data.ts')) return null
    return `
      const rules = JSON.parse(${JSON.stringify(JSON.stringify(data))})
      export const countries = () => Object.keys(rules)
      export const rulesOf = (country) => Object.hasOwn(rules, country) ? rules[country] : undefined`
  },
}

for (const format of ['esm', 'cjs'] as const) {
  await build({
    input: 'index.ts',
    plugins: [inlineData],
    logLevel: 'warn',
    output: { dir: format, format, entryFileNames: 'index.js', minify: true },
  })
}
copyFileSync(new URL('../../LICENSE', import.meta.url), 'LICENSE')
