import { about, type Finding } from '../base/finding.ts'
import type { ProviderKind } from './provider-kind.ts'

/** Asks each provider whether it knows us, where that can be asked without sending. */
export function examineProviders(
  providers: Readonly<Record<string, { kind: string; settings: unknown }>>,
  findKind: (kind: string) => ProviderKind | undefined,
  timeoutMs: number,
): Promise<Finding[]> {
  return Promise.all(
    Object.entries(providers).map(async ([name, entry]) => {
      const { ok, error } = about(`provider ${name}`)
      if (entry.kind === 'sandbox') return ok('sandbox, needs no credentials')
      const kind = findKind(entry.kind)
      if (!kind?.probe)
        return ok(`${entry.kind} can't be asked without sending; send a code to yourself`)
      const problem = await kind.probe(kind.settings.parse(entry.settings), timeoutMs)
      return problem === undefined
        ? ok(`${entry.kind} is reached and takes our credentials`)
        : error(problem, 'look at its settings in the policy file, and at the way there')
    }),
  )
}
