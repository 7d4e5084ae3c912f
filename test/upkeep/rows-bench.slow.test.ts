/**
 * The short form of `npm run bench -- rows`: it measures both installations, and upkeep does its work beside sends.
 */
import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const repository = resolve(import.meta.dirname, '../..')

test('rows: measures an empty and a full table, erases a month beside sends, and drops a week', async () => {
  const args = ['bench/rows.ts', '6000', '1000', '1']
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: repository })
  const rows = new Map(
    stdout.split('\n').map((line) => {
      const [, name = '', ...cells] = line.split('|').map((cell) => cell.trim())
      return [name, cells] as const
    }),
  )
  for (const name of ['empty', '6000 rows']) {
    const figures = rows.get(name)?.slice(0, -1).map(Number) ?? []
    expect(figures).toHaveLength(10)
    expect(Math.min(...figures)).toBeGreaterThanOrEqual(0)
    // Each send costs PostgreSQL some time.
    expect(figures[2]).toBeGreaterThan(0)
  }
  // Recipients of notices between 30 and 60 days old are a sixth of all. New sends during the run are subtracted.
  const erased = Number(/^erased (\d+) in \d+ s$/m.exec(stdout)?.[1])
  expect(erased).toBeGreaterThan(500)
  expect(erased).toBeLessThan(1_100)
  expect(rows.get('dropping a week')?.[2]).toMatch(/^\d+ ms$/)
})
