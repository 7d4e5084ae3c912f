/** The proofs for callers of right checks. */
import type { Channel } from '../base/channel.ts'
import type { RepeatableGuess } from './code-answers.ts'
import { addressesOf, isShared } from './code-names.ts'
import type { CodeOwner } from './code-store.ts'
import type { Passes } from './passes.ts'

/** It is made before the guess if the check has an id, because repeats get the same. */
export interface Proof {
  verifiedAt: string
  pass: string
}

export function createProofs(deps: {
  passes: Pick<Passes, 'issue'>
  /** PostgreSQL's time. */
  nowMs: () => number
}) {
  const make = ({ app, scene, channel, to }: CodeOwner): Proof => ({
    verifiedAt: new Date(deps.nowMs()).toISOString(),
    pass: deps.passes.issue({ app, scene, channel, to }),
  })

  return {
    make,

    /** Before a guess: for a code with several notices, one for each address, because the right code names it. */
    forRepeats(keyId: string, owner: CodeOwner): RepeatableGuess {
      const proof = isShared(owner)
        ? Object.fromEntries(
            addressesOf(owner).map((address) => [address.channel, make({ ...owner, ...address })]),
          )
        : make(owner)
      return { keyId, proof: JSON.stringify(proof) }
    },

    /** The stored proof. `channel`: of the right code, if it is for several notices. */
    read({ proof, channel }: { proof?: string | undefined; channel?: Channel }): Proof | undefined {
      const stored = proof === undefined ? undefined : JSON.parse(proof)
      return channel === undefined ? stored : stored?.[channel]
    },
  }
}
