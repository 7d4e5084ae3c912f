/**
 * The guides for other people's clients. Each begins with the lines that a user changes: at most ten in the policy
 * file, and at most ten in the client or its settings. The table of docs/testing.md shows how each client runs in the
 * suite.
 */
import { expect, test } from 'vitest'
import { fencesOf } from '../tools/markdown.ts'
import { findFiles, readSource } from '../tools/source-files.ts'

const clients = ['twilio-verify', 'logto', 'better-auth', 'supabase', 'zitadel']
const isLineOfCode = (line: string) => line.trim() !== '' && !/^\s*(#|\/\/|\/?\*)/.test(line)

test.each(['docs/guides', 'docs/zh/guides'])(
  '%s: each guide begins with ten lines at most, for the policy file and for the client',
  (folder) => {
    for (const client of clients) {
      const page = `${folder}/${client}.md`
      const lines = readSource(page).split('\n')
      const found = lines.findIndex((line) => line.startsWith('## '))
      const heading = found < 0 ? lines.length : found
      const [policy, ofClient] = fencesOf(page)
      expect(policy?.language).toBe('yaml')
      expect(policy?.text).toMatch(/^(compat|code):/)
      for (const fence of [policy, ofClient]) {
        if (!fence) expect.unreachable(page)
        const count = fence.text.split('\n').filter(isLineOfCode).length
        expect([page, count > 0 && count <= 10]).toEqual([page, true])
        expect([page, fence.lastLine <= heading]).toEqual([page, true])
      }
    }
  },
)

test('docs/testing.md names the tests of the five clients, and they are there', () => {
  const rows = readSource('docs/testing.md')
    .split('\n')
    .filter((line) =>
      clients.some((client) => line.startsWith(`| [`) && line.includes(`/${client}.md`)),
    )
  expect(rows).toHaveLength(clients.length)
  for (const row of rows) {
    const [named = ''] = /`test\/[\w/.-]+`/.exec(row) ?? []
    expect(findFiles(named.slice(1, -1))).toHaveLength(1)
  }
})
