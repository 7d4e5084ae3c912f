/** One look for all pages: colours are defined in one file, and all other files use their names. */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findFiles, readSource, repositoryRoot } from '../tools/source-files.ts'

const brand = readSource('web/brand/brand.css')
const ofBrand = (name: string) =>
  new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(brand)
const [, accent = '', darkAccent = ''] = ofBrand('accent') ?? []

test('no page has a separate colour', () => {
  const sheets = findFiles('{web,site}/**/*.css').filter(
    (file) => file !== 'web/brand/brand.css' && !/dist\/|\.work-|cache/.test(file),
  )
  expect(sheets.length).toBeGreaterThan(5)
  const own = sheets.flatMap((file) =>
    [...readSource(file).matchAll(/^(?!#).*?(#[\da-f]{3,8}\b|\brgba?\(|\bhsla?\()/gim)].map(
      ([line]) => `${file}: ${line}`,
    ),
  )
  expect(own).toEqual([])
})

test('mails and the code field, which cannot share the file, have its accent', () => {
  expect(accent).toMatch(/^#[\da-f]{6}$/)
  const mails = findFiles('templates/**/*.html')
  expect(mails.length).toBeGreaterThan(0)
  for (const mail of mails) expect(readSource(mail)).toContain(`color: ${accent}"`)
  expect(readSource('web/style.ts')).toContain(
    `--postern-accent, light-dark(${accent}, ${darkAccent})`,
  )
  expect(readSource('web/brand/postern.svg')).toContain(`fill="${accent}"`)
})

test('the picture of the site is small enough for those who show links', () => {
  const { size } = statSync(join(repositoryRoot, 'docs/public/preview.png'))
  expect(size).toBeLessThan(100_000)
})
