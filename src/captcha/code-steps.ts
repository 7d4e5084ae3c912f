import { createBatcher } from '../base/batcher.ts'
import type { Channel } from '../base/channel.ts'
import type { CodeId, NoticeId } from '../base/ids.ts'
import { loadScript, type RedisClient } from '../base/redis-script.ts'
import { reachRedis } from '../base/unavailable.ts'
import type { Lane } from '../rules/caller.ts'

/** One step of the script: its name and its arguments. */
export type Step =
  | [
      'remember',
      codeId: CodeId,
      tries: string,
      digest: string,
      ttlMs: string,
      hasOthers: '0' | '1',
      onPass: string,
      length: string,
      ...ofSeveral:
        | []
        | [noticeId: NoticeId, channel: Channel, isFirst: '0' | '1', lane: Lane, ...string[]],
    ]
  | ['refer', codeId: CodeId, ttlMs: string, hasOthers: '0' | '1', sealedHome: string]
  | ['settle', codeId: CodeId, noticeId: NoticeId, isCleared: '' | '1']
  | ['forget', codeId: CodeId, noticeId: NoticeId]
  | [
      'guess',
      requestId: string,
      lane: Lane,
      codeId: CodeId,
      keyId: string,
      sealedProof: string,
      ...digests: string[],
    ]
  | ['again', codeId: CodeId, keyId: string, ...digests: string[]]
  | ['takeBack', requestId: string, lane: Lane]
  | ['look', codeId: CodeId]
  | ['drop', codeId: CodeId, requestId: string]
  | ['clear', endsMs: string, codeId: CodeId]
  | ['scenes']

export type Answer =
  | string
  | number
  | [codeId: string, sealed: string]
  | [noticeId: string, sealed: string, codeId: string, channel: string]
  | [0, codeId: string]
  | [1, sealedProof: string, channel?: string]
  | ['home', sealedHome: string, codeId: string, endsMs: string]
  | ['code', facts: string, codeId: string, ...channels: string[]]
  | string[]

/** The codes that a step concerns: those under one key, for one scene and these channels. */
export interface Among {
  key: string
  scene: string
  /** The channels as the script names them. */
  view: string
}

export type Take = (asked: Among & { step: Step }) => Promise<Answer>

const script = loadScript('codes-N')

/** Runs steps on codes. All steps of one event-loop tick go in one call. */
export function createCodeSteps(redis: RedisClient): Take {
  return createBatcher<Among & { step: Step }, Answer>({
    // In a cluster the keys of one call must be in one slot. Keys of different owners are not.
    ...(redis.isCluster
      ? { maxItems: 1, maxConcurrent: 256, hasManyServers: true }
      : { maxItems: 128, maxConcurrent: 4 }),
    run(steps) {
      const keys = steps.map(({ key }) => key)
      const args = steps.flatMap(({ scene, view, step: [name, ...rest] }) => [
        rest.length + 3,
        name,
        scene,
        view,
        ...rest,
      ])
      return reachRedis(script.run(redis, keys, args)) as Promise<Answer[]>
    },
  })
}
