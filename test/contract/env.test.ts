import { expect, test } from 'vitest'
import { environmentNames, readEnvironment } from '../../src/config/environment.ts'
import { readSource } from '../tools/source-files.ts'

/** A name with a value, or in a comment: `PORT=3000`, `# SECRET_PREVIOUS=`. */
const assignment = /^(?:# ?)?([A-Z][A-Z0-9_]*)=(.*)$/gm

const example = [...readSource('.env.example').matchAll(assignment)].map(([line, name, value]) => ({
  name: name as string,
  value: value as string,
  isSet: !line.startsWith('#'),
}))

test('.env.example names every variable the service reads, once, and no other', () => {
  expect(example.map(({ name }) => name).sort()).toEqual([...environmentNames].sort())
})

/** The file as a reader fills it in: every given value, and a secret where one is missing. */
const filled = Object.fromEntries(
  example.filter(({ isSet }) => isSet).map(({ name, value }) => [name, value || 'x'.repeat(32)]),
)

test('.env.example as it stands lacks nothing but what it leaves empty', () => {
  expect(readEnvironment(filled)).toMatchObject({ ok: true })
})

test('.env.example shows the true default of every variable that is commented out', () => {
  const read = readEnvironment(filled)
  const defaults = read.ok ? (read.environment as Readonly<Record<string, unknown>>) : {}
  const shown = example.filter(({ isSet }) => !isSet)
  expect(shown.length).toBeGreaterThan(0)
  for (const { name, value } of shown)
    expect(`${name}=${defaults[name] ?? ''}`).toBe(`${name}=${value}`)
})

test('.env.example holds no secret', () => {
  const secrets = example.filter(({ name }) => /SECRET|PASSWORD/.test(name))
  expect(secrets.length).toBeGreaterThan(0)
  expect(secrets.filter(({ value }) => value !== '')).toEqual([])
})
