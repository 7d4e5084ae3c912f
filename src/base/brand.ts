/** The common style of all pages, from web/brand. The style sheets of a page follow it. */
import { readFileSync } from 'node:fs'

const web = new URL('../../web/', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, web), 'utf8')

/** One style sheet from the brand and these files in `web/`. Throws if a file is missing. */
export const brandedStyle = (...files: readonly string[]): string =>
  ['brand/brand.css', 'brand/page.css', ...files].map(read).join('')

/** The logo as SVG, also the icon of every page. */
export const logo: string = read('brand/postern.svg')
