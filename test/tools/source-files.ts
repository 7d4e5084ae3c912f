import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'

export const repositoryRoot = fileURLToPath(new URL('../../', import.meta.url))

/** Paths below the repository, with forward slashes, sorted. */
export function findFiles(pattern: string): string[] {
  return globSync(pattern, { cwd: repositoryRoot })
    .map((file) => file.replaceAll('\\', '/'))
    .sort()
}

export function readSource(file: string): string {
  return readFileSync(join(repositoryRoot, file), 'utf8')
}

/** All TypeScript we wrote below `src`. */
export function findSourceFiles(): string[] {
  return findFiles('src/**/*.ts').filter((file) => !file.startsWith('src/storage/generated/'))
}

export interface Import {
  /** The file it names, below the repository; packages are left out. */
  readonly target: string
  readonly isTypeOnly: boolean
}

const importStatement = /^\s*(?:import|export)\s+(type\s)?(?:[^'"`;]*?\sfrom\s+)?'(\.[^']+)'/gm
const importCall = /\bimport\(\s*'(\.[^']+)'\s*\)/g

/** The imports of our own files in `source`, the text of `file`. */
export function importsIn(file: string, source: string): Import[] {
  const resolve = (specifier: string) => normalize(join(dirname(file), specifier))
  return [
    ...[...source.matchAll(importStatement)].map(([, type, specifier]) => ({
      target: resolve(specifier as string),
      isTypeOnly: type !== undefined,
    })),
    ...[...source.matchAll(importCall)].map(([, specifier]) => ({
      target: resolve(specifier as string),
      isTypeOnly: false,
    })),
  ]
}
