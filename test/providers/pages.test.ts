import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
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

  it.each([[[]], [['nobody']], [['smtp', 'smtp']]])('try.ts with %j: its usage', (args) => {
    const script = fileURLToPath(new URL('try.ts', import.meta.url))
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args])
    expect([status, `${stdout}`, `${stderr}`]).toEqual([
      1,
      '',
      expect.stringMatching(
        /^Usage: npx node test\/providers\/try\.ts KIND\nKinds: .*\bsmtp\b.*\n$/,
      ),
    ])
  })
})
