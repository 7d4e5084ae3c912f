/**
 * The provider kinds that a policy file can name: kinds of Postern, of the host and of plugins. Each kind is checked when
 * it is added, so that its faults are reported at start, by name.
 */
import { type ZodType, z } from 'zod'
import { channels } from '../base/channel.ts'
import { shortName } from '../base/names.ts'
import { parsedReceipts, type ReceiptReader } from '../base/receipt.ts'
import { aliyun } from './aliyun/index.ts'
import { aliyunPnvs } from './aliyun-pnvs/index.ts'
import { http } from './http/index.ts'
import type { Provider } from './provider.ts'
import type { ProviderDeps, ProviderKind } from './provider-kind.ts'
import { sandbox } from './sandbox/index.ts'
import { ses } from './ses/index.ts'
import { smpp } from './smpp/index.ts'
import { smtp } from './smtp/index.ts'
import { telegram } from './telegram/index.ts'
import { tencent } from './tencent/index.ts'
import { twilio } from './twilio/index.ts'
import { vonage } from './vonage/index.ts'
import { webhook } from './webhook/index.ts'
import { whatsapp } from './whatsapp/index.ts'

export const ownKinds: readonly ProviderKind[] = [
  smtp,
  ses,
  aliyun,
  aliyunPnvs,
  tencent,
  twilio,
  vonage,
  smpp,
  whatsapp,
  telegram,
  http,
  webhook,
  sandbox,
]

/** A registry that begins with the kinds of Postern. */
export function createProviderKinds() {
  const kinds = new Map<string, ProviderKind>()

  /** Throws an Error if the kind has a fault, or if its name is taken. */
  function add(given: unknown): void {
    const problem = problemOf(kindShape, given)
    if (problem) throw new Error(`is not a provider kind: ${problem}`)
    const kind = given as ProviderKind
    if (kinds.has(kind.kind)) throw new Error(`there is a provider kind "${kind.kind}" already`)
    kinds.set(kind.kind, kind)
  }
  for (const kind of ownKinds) add(kind)

  return { add, find: (name: string) => kinds.get(name), names: () => [...kinds.keys()] }
}

/** A provider of the policy file: its kind, and its settings as the kind has read them. */
export interface ProviderSetUp {
  readonly kind: ProviderKind
  readonly settings: unknown
}

/** Builds the provider of this name. Throws an Error with the name if its kind fails. */
export function createProvider(
  name: string,
  { kind, settings }: ProviderSetUp,
  deps: ProviderDeps,
): Provider {
  return ofKind(name, kind, () => {
    const provider = kind.create(name, settings, deps)
    const problem = problemOf(providerShape.extend({ name: z.literal(name) }), provider)
    if (problem) throw new Error(`create returned no provider: ${problem}`)
    return provider
  })
}

/** The reader of receipts over HTTP; undefined if the kind has none. Throws as `createProvider` does. */
export function createReceiptReader(
  name: string,
  { kind, settings }: ProviderSetUp,
): ReceiptReader | undefined {
  return ofKind(name, kind, () => {
    const reader = kind.createReceiptReader?.(settings)
    if (!reader) return undefined
    const problem = problemOf(readerShape, reader)
    if (problem) throw new Error(`createReceiptReader returned no reader: ${problem}`)
    return {
      maxBodyBytes: reader.maxBodyBytes,
      ...(reader.readsQuery ? { readsQuery: true } : {}),
      fetchProof: async (request) => (await reader.fetchProof?.(request)) ?? true,
      confirm: async (request) => (await reader.confirm?.(request)) ?? true,
      mayBeGenuine: (head) => reader.mayBeGenuine(head),
      parse: (request) =>
        ofKind(name, kind, () => {
          const parsed = reader.parse(request)
          const problem = problemOf(parsedReceipts, parsed)
          if (problem) throw new Error(`parse returned no receipts: ${problem}`)
          return parsed
        }),
    }
  })
}

/** Readers by provider name, for providers with receipts over HTTP. */
export function createReceiptReaders(
  providers: ReadonlyMap<string, ProviderSetUp>,
): ReadonlyMap<string, ReceiptReader> {
  const readers = new Map<string, ReceiptReader>()
  for (const [name, setUp] of providers) {
    const reader = createReceiptReader(name, setUp)
    if (reader) readers.set(name, reader)
  }
  return readers
}

/** Whether a provider serves numbers of a country, by its settings. `country` is empty if none is known. */
export function createServes(providers: ReadonlyMap<string, ProviderSetUp>) {
  return (name: string, country: string): boolean => {
    const setUp = providers.get(name)
    if (!setUp) return true
    return ofKind(name, setUp.kind, () => setUp.kind.serves?.(setUp.settings, country) ?? true)
  }
}

function ofKind<Made>(name: string, { kind }: ProviderKind, make: () => Made): Made {
  try {
    return make()
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    throw new Error(`provider "${name}" of kind ${kind}: ${message}`, { cause: error })
  }
}

const isFunction = (value: unknown) => typeof value === 'function'
const aFunction = z.custom(isFunction, 'must be a function')
const channelList = z.array(z.enum(channels)).min(1)

const kindShape = z.object({
  kind: shortName,
  channels: channelList,
  settings: z.custom((value) => isFunction((value as ZodType)?.safeParse), 'must be a zod schema'),
  settingsIn: aFunction.optional(),
  channelsOf: aFunction.optional(),
  serves: aFunction.optional(),
  create: aFunction,
  probe: aFunction.optional(),
  createReceiptReader: aFunction.optional(),
})

const providerShape = z.object({
  channels: channelList,
  slots: z.int().min(1),
  slotsFor: aFunction.optional(),
  send: aFunction,
  query: aFunction.optional(),
  close: aFunction,
})

const readerShape = z.object({
  maxBodyBytes: z.int().min(1),
  mayBeGenuine: aFunction,
  parse: aFunction,
})

function problemOf(shape: ZodType, value: unknown): string | undefined {
  const [issue] = shape.safeParse(value).error?.issues ?? []
  return issue && [...issue.path, issue.message].join(': ')
}
