import { matchesGlob } from 'node:path'
import { expect, test } from 'vitest'
import { docsPages, fencesOf } from '../tools/markdown.ts'
import { readSource } from '../tools/source-files.ts'

const patterns = readSource('.gitignore')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))

/** Understands only the patterns in use: a name, `*`, and a folder with its slash. */
const isIgnored = (file: string) =>
  patterns.some((pattern) => matchesGlob(file, `**/${pattern}${pattern.endsWith('/') ? '**' : ''}`))

test('files that README and docs have a reader write into Postern’s folder are not committed', () => {
  const commands = ['README.md', ...docsPages]
    .flatMap(fencesOf)
    .filter(({ language }) => language === 'sh')
    // The package is installed in another folder.
    .filter(({ text }) => !text.includes('npm i ./postern-'))
    .map(({ text }) => text.replaceAll(/ #.*$/gm, ''))
  const written = commands.flatMap((text) =>
    [...text.matchAll(/(?:\btee|>>?|\bcp (?:-r )?\S+) ([^\s&]+)/g)].map(([, file = '']) => file),
  )
  expect(written).toContain('.env')
  const inside = written.filter((file) => !file.startsWith('../') && !file.startsWith('/'))
  const others = [
    '.postern/demo-key',
    'my-page.key',
    'examples/vue/package-lock.json',
    'examples/next/.next/server/app/page.js',
    'deploy/kubernetes/my-secret.yaml',
  ]
  expect([...inside, ...others].filter((file) => !isIgnored(file))).toEqual([])
  expect(isIgnored('.env.example')).toBe(false)
})
