/** `npm run bench -- [http | keyless] …`: one of the benches of requests; `http` when none is named. */
const [name = ''] = process.argv.slice(2)
if (name === 'http' || name === 'keyless') process.argv.splice(2, 1)
await import(name === 'keyless' ? './keyless.ts' : './http.ts')
