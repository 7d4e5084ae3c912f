/** The names of codes in Redis: who owns a code, the keys under which it lies, and the digests by which it is compared. */
import { type Channel, channels } from '../base/channel.ts'
import type { CodeId } from '../base/ids.ts'
import { defaultScene } from '../base/names.ts'
import type { Secrets } from '../crypto/secrets.ts'
import { firstChannelTo } from '../recipient/channels.ts'
import type { Among, Answer } from './code-steps.ts'

/** The owner of a code: a code for one owner never passes for another. */
export interface CodeOwner {
  app: string
  scene: string
  channel: Channel
  to: string
}

/** The owner of the code of a captcha's row. */
export function ownerOf(row: {
  app: string
  scene: string | null
  channel: Channel
  recipient: string
}): CodeOwner {
  const { app, scene, channel, recipient: to } = row
  return { app, scene: scene ?? defaultScene, channel, to }
}

/**
 * The owner of a code for several notices. Each notice goes to one of the addresses, with separate digits. The code lies
 * with the codes of `to`.
 */
export interface SharedOwner extends CodeOwner {
  addresses: Readonly<Partial<Record<Channel, string>>>
}

/** An entry that leads to a code under another key. */
export interface Lead {
  codeId: CodeId
  home: SharedOwner
  endsMs: string
}

export type CodeNames = ReturnType<typeof createCodeNames>

export const isShared = (owner: CodeOwner): owner is SharedOwner => 'addresses' in owner

/** Where the notices of the code go. */
export const addressesOf = (owner: CodeOwner): readonly { channel: Channel; to: string }[] =>
  isShared(owner)
    ? Object.entries(owner.addresses).map(([channel, to]) => ({ channel: channel as Channel, to }))
    : [owner]

export function createCodeNames(secrets: Secrets, keyPrefix: string) {
  const keysBy = (parts: string[]) =>
    secrets.subjectHashes(parts).map((hash) => `${keyPrefix}code:${hash}`)

  /** Channels to one kind of address share their keys. Its first channel has no name there. */
  const viewOf = (names: readonly Channel[]) =>
    names.map((name) => (name === firstChannelTo(name) ? '' : name)).join(',')

  /** The channels whose codes this code replaces: those to the address with which it lies. */
  const channelsOf = (owner: CodeOwner): readonly Channel[] =>
    isShared(owner)
      ? channels.filter((channel) => owner.addresses[channel] === owner.to)
      : [owner.channel]

  return {
    /** The codes of an owner under each secret in use, the current secret first. */
    amongOf(owner: CodeOwner): Among[] {
      const { app, scene, channel, to } = owner
      const view = viewOf(channelsOf(owner))
      return keysBy([app, firstChannelTo(channel), to]).map((key) => ({ key, scene, view }))
    },

    /** The key of a lead to the code with this id. Ids have no channel, so no address has the same key. */
    amongOfId: (app: string, codeId: CodeId): Among[] =>
      keysBy([app, 'code', codeId]).map((key) => ({ key, scene: '', view: '' })),

    /** For one address, one digest per secret in use, the current secret first. */
    digestsOf: (owner: CodeOwner, code: string): string[] =>
      addressesOf(owner).flatMap(({ channel, to }) =>
        secrets.codeDigests([owner.app, owner.scene, channel, to, code]),
      ),

    sealHome: (home: SharedOwner, codeId: CodeId): string =>
      secrets.seal(JSON.stringify(home), codeId).toString('base64'),

    /** The lead that has answered in place of a code. */
    leadBy(answer: Answer): Lead | undefined {
      if (typeof answer !== 'object' || answer[0] !== 'home') return undefined
      const [, sealed, codeId, endsMs] = answer as [string, string, string, string]
      const home = JSON.parse(secrets.unseal(Buffer.from(sealed, 'base64'), codeId))
      return { codeId, home, endsMs }
    },
  }
}
