import { aliyun } from './aliyun/index.ts'
import type { ProviderKind } from './provider-kind.ts'
import { sandbox } from './sandbox/index.ts'
import { smpp } from './smpp/index.ts'
import { smtp } from './smtp/index.ts'
import { tencent } from './tencent/index.ts'
import { twilio } from './twilio/index.ts'
import { webhook } from './webhook/index.ts'

/** Every kind a policy file can name. */
export const providerKinds: readonly ProviderKind[] = [
  smtp,
  aliyun,
  tencent,
  twilio,
  smpp,
  webhook,
  sandbox,
]

export function findProviderKind(kind: string): ProviderKind | undefined {
  return providerKinds.find((known) => known.kind === kind)
}
