/** The look that all pages of ours share: web/brand, in front of a page's own sheets. */
import { readFileSync } from 'node:fs'

const web = new URL('../../web/', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, web), 'utf8')

/** One style sheet of the brand and of these files in `web/`. Throws when one is missing. */
export const brandedStyle = (...files: readonly string[]): string =>
  ['brand/brand.css', 'brand/page.css', ...files].map(read).join('')

/** As SVG; the icon of every page too. */
export const logo: string = read('brand/postern.svg')
