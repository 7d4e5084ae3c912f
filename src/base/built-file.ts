import { readFileSync } from 'node:fs'

/** A file that `npm run browser` made in `web/dist`. Throws if it is missing. The path is the same from `dist/base`. */
export function readBuiltFile(name: string): Buffer {
  try {
    return readFileSync(new URL(`../../web/dist/${name}`, import.meta.url))
  } catch (error) {
    throw new Error(`web/dist/${name} is missing; in a checkout \`npm run browser\` makes it`, {
      cause: error,
    })
  }
}
