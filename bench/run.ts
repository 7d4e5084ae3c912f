/**
 * `npm run bench -- [http | keyless | overload | attack | field | rows | instructions | latency | statements] …`. The default is `http`.
 */
const benches: Record<string, () => Promise<unknown>> = {
  http: () => import('./http.ts'),
  keyless: () => import('./keyless.ts'),
  overload: () => import('./overload.ts'),
  attack: () => import('./attack.ts'),
  field: () => import('./field.ts'),
  rows: () => import('./rows.ts'),
  instructions: () => import('./instructions.ts'),
  latency: () => import('./latency.ts'),
  statements: () => import('./statements.ts'),
}
const [name = ''] = process.argv.slice(2)
if (benches[name]) process.argv.splice(2, 1)
await (benches[name] ?? benches.http)?.()
