import { readdirSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { findProviderKind, providerKinds } from '../../src/providers/index.ts'

describe('the kinds of providers', () => {
  const root = new URL('../../', import.meta.url)
  const folders = readdirSync(new URL('src/providers', root), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)

  it('are one folder each, by the same name', () => {
    expect(providerKinds.map(({ kind }) => kind).sort()).toEqual(folders.sort())
  })

  it('have a page each', () => {
    const pages = readdirSync(new URL('docs/providers', root))
    expect(pages.sort()).toEqual(['README.md', ...folders.map((name) => `${name}.md`)].sort())
  })

  it('are found by name, and only by a name of theirs', () => {
    expect(findProviderKind('smtp')?.channels).toEqual(['email'])
    for (const name of ['', 'SMTP', 'constructor', '__proto__']) {
      expect(findProviderKind(name)).toBeUndefined()
    }
  })
})
