/** The themes in docs/code-field.md: each is readable and has a picture. DOCS_IMAGES=1 draws the pictures again. */
import { statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { textOf } from '../tools/markdown.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { axe, partsOf, said, startField, typeRight, wrongFor } from '../web/field-page.ts'

const maxPictureBytes = 15_000
const row = /^\| (\w+) \| (?:`([^`]+)`)? ?\| !\[[^\]]+\]\((images\/field-\w+\.png)\) \|$/gm
const themes = [...textOf('docs/code-field.md').matchAll(row)].map(
  ([, name = '', style = '', picture = '']) => ({ name, style, picture }),
)

let numbers = 0
const { postern, open } = await startField()

test('there are some', () => expect(themes.length).toBeGreaterThan(3))

test.each(themes)(
  '$name: it can be read in every state, light and dark',
  async ({ style, picture }) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await open({
        attributes: `channels="sms" style="${style}"`,
        context: { colorScheme, reducedMotion: 'reduce', viewport: { width: 520, height: 300 } },
        // A page has the field's colour scheme.
        head: style.includes('color-scheme') ? '<style>:root { color-scheme: dark }</style>' : '',
      })
      await partsOf(page).address.fill(`+86138001${39_000 + ++numbers}`)
      await page.locator('.postern-field').waitFor()
      expect(await axe(page)).toEqual([])
      await partsOf(page).send.click()
      await said(page).toContain('on its way')
      const { id } = (await page.evaluate('seen.at(-1)')) as { id: string }
      const code = await postern.codeFor(id)
      expect(await axe(page)).toEqual([])
      if (process.env.DOCS_IMAGES && colorScheme === 'light') {
        await page.keyboard.type('12')
        const {
          x = 0,
          y = 0,
          height = 0,
        } = (await page.locator('postern-code').boundingBox()) ?? {}
        const clip = { x: x - 8, y: y - 4, width: 376, height: height + 8 }
        await page.screenshot({ path: `${repositoryRoot}docs/${picture}`, clip })
      }
      await partsOf(page).code.fill(wrongFor(code))
      await said(page).toContain('wrong')
      expect(await axe(page)).toEqual([])
      await typeRight(page, code)
      expect(await axe(page)).toEqual([])
    }
    expect(statSync(`${repositoryRoot}docs/${picture}`).size).toBeLessThanOrEqual(maxPictureBytes)
  },
)
