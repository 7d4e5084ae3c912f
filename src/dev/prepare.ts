/**
 * `npm ci` runs this. It builds two things that are not committed: the Prisma client and the code field for pages. The
 * packages for this are development packages. An install without them (`--omit=dev`) puts them into a folder that is
 * removed afterwards, so that only packages for production stay.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const makers = ['prisma', 'rolldown']
const sources = [
  'package.json',
  'package-lock.json',
  'prisma.config.ts',
  'prisma',
  'web',
  'src/i18n',
]
const made = ['src/storage/generated', 'web/dist']

function run(command: string, folder: string): void {
  execFileSync('npm', command.split(' '), { cwd: folder, stdio: 'inherit' })
}

function make(folder: string): void {
  run('run generate', folder)
  run('run browser', folder)
}

if (makers.every((name) => existsSync(join(root, 'node_modules', name)))) {
  make(root)
} else {
  const folder = mkdtempSync(join(tmpdir(), 'postern-prepare-'))
  try {
    for (const name of sources) {
      cpSync(join(root, name), join(folder, name), { recursive: true })
    }
    run('ci --ignore-scripts --include=dev --include=optional --include=peer', folder)
    make(folder)
    for (const name of made) {
      cpSync(join(folder, name), join(root, name), { recursive: true })
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
