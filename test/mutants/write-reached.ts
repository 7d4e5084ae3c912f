/** Loaded into a process that a test starts: writes each mutant that the process reaches to a file. */
import { appendFileSync } from 'node:fs'

const file = process.env.MUTANTS_REACHED as string
const known = new Set<string>()
const counts = new Proxy<Record<string, number>>(
  {},
  {
    set(_, mutant: string) {
      if (!known.has(mutant)) appendFileSync(file, `${mutant}\n`)
      return Boolean(known.add(mutant))
    },
  },
)
Object.assign(globalThis, { __stryker__: { mutantCoverage: { static: counts, perTest: {} } } })
