/**
 * `npm run docs`: builds the site of docs/ in `site/dist`, which the demo serves at /docs/guide/, and prints its size.
 * With `--if-changed` it does nothing if the site was made from the same files.
 *
 * The build uses a folder of this process and moves it into place when it is complete. So several builds can run at
 * once, and readers see the previous site until then.
 */
import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const root = fileURLToPath(new URL('.', import.meta.url))
const dist = join(root, 'dist')
/** The fingerprint of the files that the site was made from. */
const madeOf = 'made-of.txt'
/** All files that a build reads. Pages are made from the code too. */
const sources = [
  ...[
    '../docs',
    '../web/brand',
    '../src',
    '../.env.example',
    '../package.json',
    '../package-lock.json',
  ],
  ...['.vitepress/config.ts', '.vitepress/theme'],
  ...globSync('*.ts', { cwd: root }),
]

removeLeftovers()
const fingerprint = fingerprintOf(sources.flatMap(filesOf).sort())
const isCurrent =
  existsSync(join(dist, madeOf)) && readFileSync(join(dist, madeOf), 'utf8') === fingerprint
if (!isCurrent || !process.argv.includes('--if-changed')) await makeSite()

async function makeSite(): Promise<void> {
  // Imported late: loading it takes longer than finding that the site is up to date.
  const { build } = await import('vitepress')
  const work = workFolderOf(process.pid)
  mkdirSync(work)
  process.on('exit', () => rmSync(work, { recursive: true, force: true }))
  await build(root, {
    onAfterConfigResolve(config) {
      config.tempDir = join(work, 'temp')
      config.outDir = join(work, 'dist')
    },
  })
  compressTexts(join(work, 'dist'))
  writeFileSync(join(work, 'dist', madeOf), fingerprint)
  moveIntoPlace(work)
  printSize()
}

/** Also writes each text in compressed form, which the demo and many web servers send. */
function compressTexts(folder: string): void {
  for (const name of globSync('**/*.{css,html,js,svg}', { cwd: folder })) {
    const file = join(folder, name)
    writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }))
  }
}

function moveIntoPlace(work: string): void {
  for (let round = 0; ; round++) {
    if (existsSync(dist)) renameSync(dist, join(work, `old-${round}`))
    try {
      renameSync(join(work, 'dist'), dist)
      return
    } catch (error) {
      // Another build was quicker.
      if (!existsSync(dist)) throw error
    }
  }
}

function printSize(): void {
  const uncompressed = filesOf('dist').filter((name) => !name.endsWith('.gz'))
  const files = uncompressed.map((name) => ({ name, size: statSync(join(root, name)).size }))
  const kB = (chosen: typeof files) =>
    `${Math.round(chosen.reduce((sum, { size }) => sum + size, 0) / 1_000)} kB`
  const pages = files.filter(({ name }) => name.endsWith('.html'))
  console.log(`pages  ${pages.length}, ${kB(pages)}
all    ${files.length} files, ${kB(files)}
in     ${dist}`)
}

function workFolderOf(pid: number): string {
  return join(root, '.vitepress', `.work-${pid}`)
}

/** Of builds that were killed. */
function removeLeftovers(): void {
  for (const name of readdirSync(join(root, '.vitepress'))) {
    const pid = Number(/^\.work-(\d+)$/.exec(name)?.[1])
    if (pid && !isRunning(pid)) rmSync(workFolderOf(pid), { recursive: true, force: true })
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** The file itself, or all files below a folder. Paths are below `site/`. */
function filesOf(path: string): string[] {
  if (!statSync(join(root, path)).isDirectory()) return [path]
  return readdirSync(join(root, path), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(root, join(parentPath, name)))
}

function fingerprintOf(paths: readonly string[]): string {
  const hash = createHash('sha256')
  for (const path of paths) {
    const content = readFileSync(join(root, path))
    hash.update(`${path}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}
