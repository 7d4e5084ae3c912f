import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes a folder and its missing parents. `mkdirSync` with `recursive` would try for ever below a folder such as /proc,
 * which refuses new folders with ENOENT.
 */
export function makeFolder(path: string, mode = 0o777): void {
  if (existsSync(path)) return
  makeFolder(dirname(path), mode)
  mkdirSync(path, { mode })
}
