/** TXT records about mail: lists of tags such as `v=DMARC1; p=none`. */
import { type DnsResolver, settle } from './mail-domains.ts'

/** The tags of a record by their names in lower case. */
export type Tags = ReadonlyMap<string, string>

export function tagsOf(record: string): Tags {
  return new Map(
    record.split(';').map((part) => {
      const [name = '', value = ''] = part.split('=').map((side) => side.trim())
      return [name.toLowerCase(), value]
    }),
  )
}

/** The TXT records of a name: empty if there are none, undefined without a clear answer. */
export async function textsOf(resolver: DnsResolver, name: string): Promise<string[] | undefined> {
  const found = await settle(() => resolver.resolveTxt(name))
  if (found === 'uncertain') return undefined
  return Array.isArray(found) ? found.map((pieces) => pieces.join('')) : []
}

export interface Dmarc {
  /** The domain that receivers regard as the owner. In relaxed mode, domains of one owner are aligned. */
  readonly organisation: string
  /** The record that applies, and the domain that has it. */
  readonly record?: { readonly at: string; readonly tags: Tags }
}

/** RFC 9989 allows eight look-ups: the domain itself, and at most seven parents. */
const mostParents = 7

/** DMARC of a domain by a walk up the tree of names (RFC 9989, 4.10). Undefined without a clear answer. */
export async function findDmarc(resolver: DnsResolver, domain: string): Promise<Dmarc | undefined> {
  const labels = domain.split('.')
  const parents = labels.slice(1).map((_, index) => labels.slice(index + 1).join('.'))
  const walk = [domain, ...parents.slice(-mostParents)]
  const texts = await Promise.all(walk.map((at) => textsOf(resolver, `_dmarc.${at}`)))
  if (texts.includes(undefined)) return undefined
  const records = walk.flatMap((at, index) => {
    const [record, ...others] = (texts[index] ?? []).filter((text) =>
      /^v=DMARC1\s*(;|$)/i.test(text),
    )
    // If a name has two records, receivers ignore both.
    return record === undefined || others.length > 0 ? [] : [{ at, tags: tagsOf(record) }]
  })
  const marked = records.find(({ tags }) => /^[ny]$/i.test(tags.get('psd') ?? ''))
  const isSuffix = marked?.tags.get('psd')?.toLowerCase() === 'y'
  const top = marked ?? records.at(-1)
  const organisation = (isSuffix ? walk[walk.indexOf(marked.at) - 1] : top?.at) ?? domain
  const of = (name: string) => records.find(({ at }) => at === name)
  const record = of(domain) ?? of(organisation) ?? top
  return { organisation, ...(record ? { record } : {}) }
}
