import { existsSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * A folder with all above it that are missing. `mkdirSync` with `recursive` would try for ever where the last one that is
 * there can hold no folder and says ENOENT, as /proc does.
 */
export function makeFolder(path: string, mode = 0o777): void {
  if (existsSync(path)) return
  makeFolder(dirname(path), mode)
  mkdirSync(path, { mode })
}
