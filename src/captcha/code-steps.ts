import { createBatcher } from '../base/batcher.ts'
import { loadScript, type RedisClient } from '../base/redis-script.ts'
import { reachRedis } from '../base/unavailable.ts'

/** One step of the script: its name and its arguments. */
export type Step =
  | [
      'remember',
      noticeId: string,
      tries: string,
      digest: string,
      ttlMs: string,
      hasOthers: '0' | '1',
      onPass: string,
      length: string,
    ]
  | ['settle' | 'forget', noticeId: string]
  | [
      'guess',
      requestId: string,
      noticeId: string,
      keyId: string,
      sealedProof: string,
      ...digests: string[],
    ]
  | ['again', noticeId: string, keyId: string, ...digests: string[]]
  | ['takeBack', requestId: string]
  | ['look', noticeId: string]
  | ['drop', noticeId: string, requestId: string]
  | ['clear', endsMs: string, noticeId: string]
  | ['scenes']

export type Answer =
  | string
  | number
  | [noticeId: string, sealed: string]
  | [0, noticeId: string]
  | [1, sealedProof: string]
  | string[]

const script = loadScript('codes-N')

/** Runs steps on codes. All steps of one event-loop tick go in one call. */
export function createCodeSteps(redis: RedisClient) {
  return createBatcher<{ key: string; scene: string; step: Step }, Answer>({
    // In a cluster the keys of one call must be in one slot. Keys of different owners are not.
    ...(redis.isCluster
      ? { maxItems: 1, maxConcurrent: 256, hasManyServers: true }
      : { maxItems: 128, maxConcurrent: 4 }),
    run(steps) {
      const keys = steps.map(({ key }) => key)
      const args = steps.flatMap(({ scene, step: [name, ...rest] }) => [
        rest.length + 2,
        name,
        scene,
        ...rest,
      ])
      return reachRedis(script.run(redis, keys, args)) as Promise<Answer[]>
    },
  })
}
