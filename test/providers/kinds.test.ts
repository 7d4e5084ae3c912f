import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createProviderKinds, ownKinds } from '../../src/providers/kinds.ts'

describe('the kinds of providers', () => {
  const root = new URL('../../', import.meta.url)
  const folders = readdirSync(new URL('src/providers', root), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)

  it('are one folder each, by the same name', () => {
    expect(ownKinds.map(({ kind }) => kind).sort()).toEqual(folders.sort())
  })

  it('have a page each', () => {
    const pages = readdirSync(new URL('docs/providers', root))
    expect(pages.sort()).toEqual(['README.md', ...folders.map((name) => `${name}.md`)].sort())
  })

  it('have a case each, but for the sandbox, which is no far end', () => {
    const cases = readdirSync(new URL('test/providers/cases', root))
    const expected = folders.filter((name) => name !== 'sandbox').map((name) => `${name}.ts`)
    expect(cases.sort()).toEqual(expected.sort())
  })

  it('are found by name, and only by a name of theirs', () => {
    const { find } = createProviderKinds()
    expect(find('smtp')?.channels).toEqual(['email'])
    for (const name of ['', 'SMTP', 'constructor', '__proto__']) {
      expect(find(name)).toBeUndefined()
    }
  })
})
