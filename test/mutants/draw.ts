/**
 * `--sample` of `npm run mutants`. Stryker has no random sample, and a range of lines also names every mutant inside
 * it. This file is loaded before Stryker and leaves it a part of the mutants. The same seed draws the same ones, and
 * a larger sample contains the smaller one.
 */
import { createHash } from 'node:crypto'
import { relative } from 'node:path'
import { pathToFileURL } from 'node:url'

const { MUTANTS_SAMPLE: sample, MUTANTS_SEED: seed, MUTANTS_STRYKER: stryker } = process.env
const core = `${stryker}/node_modules/@stryker-mutator/core/dist/src`
const { MutantTestPlanner } = await import(
  pathToFileURL(`${core}/mutants/mutant-test-planner.js`).href
)
const allOf = MutantTestPlanner.prototype.incrementalDiff

MutantTestPlanner.prototype.incrementalDiff = async function (mutants: readonly Mutant[]) {
  const all: Mutant[] = await allOf.call(this, mutants)
  const tried = all.filter((mutant) => this.planMutant(mutant).mutant.status !== 'Ignored')
  const drawn = tried
    .map((mutant) => ({ mutant, lot: lotOf(mutant) }))
    .sort((one, other) => (one.lot < other.lot ? -1 : 1))
    .slice(0, Number(sample))
  console.log(`${drawn.length} of ${tried.length} mutants, drawn with --seed ${seed}`)
  return drawn.map(({ mutant }) => mutant)
}

interface Mutant {
  readonly fileName: string
  readonly location: object
  readonly replacement: string
}

function lotOf({ fileName, location, replacement }: Mutant): string {
  const parts = [seed, relative(process.cwd(), fileName), location, replacement]
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}
