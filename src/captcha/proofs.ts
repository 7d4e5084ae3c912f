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
  const { passes, nowMs } = deps

  function make({ app, scene, channel, to }: CodeOwner): string {
    const pass = passes.issue({ app, scene, channel, to })
    return JSON.stringify({ verifiedAt: new Date(nowMs()).toISOString(), pass } satisfies Proof)
  }

  return {
    make,

    /** Before a guess: for a code with several notices, one for each address, because the right code names it. */
    forRepeats(keyId: string, owner: CodeOwner): RepeatableGuess {
      if (!isShared(owner)) return { keyId, proof: make(owner) }
      const { app, scene } = owner
      const made = addressesOf(owner).map((address) => [
        address.channel,
        make({ app, scene, ...address }),
      ])
      return { keyId, proof: JSON.stringify(Object.fromEntries(made)) }
    },
  }
}

/** The proof for the channel of the right code. */
export const proofIn = (proofs: string, { channel }: { channel?: Channel }): string =>
  channel === undefined ? proofs : JSON.parse(proofs)[channel]
