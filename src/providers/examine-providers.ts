import { orLate } from '../base/deadline.ts'
import { about, type Finding } from '../base/finding.ts'
import type { ProviderSetUp } from './kinds.ts'

/** A kind of somebody else's may not keep its word about the time. */
const overrunMs = 1_000

/** Asks each provider whether it knows us, where that can be asked without sending. */
export function examineProviders(
  providers: ReadonlyMap<string, ProviderSetUp>,
  timeoutMs: number,
): Promise<Finding[]> {
  return Promise.all(
    [...providers].map(async ([name, { kind, settings }]) => {
      const { ok, error } = about(`provider ${name}`)
      if (kind.kind === 'sandbox') return ok('sandbox, needs no credentials')
      if (!kind.probe)
        return ok(`${kind.kind} can't be asked without sending; send a code to yourself`)
      const late = () => 'its kind did not answer in time'
      const probing = (async () => kind.probe?.(settings, timeoutMs))()
      const problem = await orLate(probing, timeoutMs + overrunMs, late).catch(
        (thrown: unknown) => `its kind failed inside: ${(thrown as Error).message}`,
      )
      return problem === undefined
        ? ok(`${kind.kind} is reached and takes our credentials`)
        : error(problem, 'look at its settings in the policy file, and at the way there')
    }),
  )
}
