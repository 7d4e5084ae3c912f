import { describe, expect, it } from 'vitest'
import { ownKinds } from '../../src/providers/kinds.ts'
import { readPage, tryProvider } from './try.ts'

describe('the page of a provider', () => {
  it.each(ownKinds.map(({ kind }) => kind))('%s: its entry works as written', async (kind) => {
    expect(readPage(kind).kind).toBe(kind)
    const { noticeId, result, seen, complaints } = await tryProvider(kind)
    expect(result.kind).toBe('accepted')
    expect(complaints).toEqual([])
    expect(seen).toHaveLength(1)
    if (kind !== 'smpp') expect(JSON.stringify(seen)).toContain(noticeId)
  })
})
