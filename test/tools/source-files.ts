import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'acorn'

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

/** All TypeScript files below `src`, except for generated ones. */
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

/** The imports of Postern's own files in `source`, the text of `file`. */
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

/** The comments of a TypeScript source, unchanged. */
export const commentsIn = (source: string): string[] =>
  source.match(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm) ?? []

const title =
  /(?:\b(?:test|describe)(?:\.(?!each\b|for\b)\w+)*\(|\)\()\s*(['`"])((?:\\.|(?!\1)[^\n])*)\1\s*,/g

/** The titles of tests and groups in the source of a test, as they are written. */
export const titlesIn = (source: string): string[] =>
  [...source.matchAll(title)].map(([, , text = '']) => text)

/** A node of the syntax tree, with the parts that its reader knows. */
export interface SyntaxNode {
  readonly type: string
  readonly loc: {
    readonly start: { readonly line: number }
    readonly end: { readonly line: number }
  }
}

/**
 * Calls `enter` for every node of a TypeScript source, without types. For inner nodes, `enter` gets the value that it
 * returned for the outer node.
 */
export function walkSource<Context>(
  source: string,
  outermost: Context,
  enter: (node: SyntaxNode, context: Context) => Context,
): void {
  const visit = (value: unknown, context: Context): void => {
    if (typeof value !== 'object' || value === null) return
    const within = 'type' in value && 'loc' in value ? enter(value as SyntaxNode, context) : context
    for (const member of Object.values(value)) visit(member, within)
  }
  // Types become spaces, so every line keeps its number.
  const script = stripTypeScriptTypes(source)
  visit(parse(script, { ecmaVersion: 'latest', sourceType: 'module', locations: true }), outermost)
}
