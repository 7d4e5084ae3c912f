/**
 * Builds `postern-limiter` from src/limiter and lua into `limiter-package/dist`, and packs it: one bundle
 * for `import`, one for `require`, types for both, the scripts inside the bundles. Prints the tarball.
 * `npm run pack:limiter -- [FOLDER]`; the tarball goes to FOLDER, or beside the build.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'rolldown'

const repository = fileURLToPath(new URL('..', import.meta.url))
const target = join(repository, 'limiter-package', 'dist')

/** The package's edition of src/limiter/scripts.ts. */
const inlineScripts: Plugin = {
  name: 'inline-scripts',
  load(id) {
    if (!id.endsWith('src/limiter/scripts.ts')) return null
    const entries = ['acquire', 'peek', 'release', 'reset'].map((name) => {
      const source = readFileSync(join(repository, 'lua', `${name}-N.lua`), 'utf8')
      return `${name}: createScript('${name}-N', ${JSON.stringify(source)})`
    })
    return `import { createScript } from '../base/redis-script.ts'
      export const scripts = { ${entries.join(', ')} }`
  },
}

rmSync(target, { recursive: true, force: true })
const formats = { esm: 'module', cjs: 'commonjs' } as const
for (const format of ['esm', 'cjs'] as const) {
  const folder = join(target, format)
  await build({
    input: join(repository, 'src/limiter/index.ts'),
    platform: 'node',
    external: ['croner'],
    plugins: [inlineScripts],
    logLevel: 'warn',
    output: { dir: folder, format, entryFileNames: 'index.js', minify: true },
  })
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ type: formats[format] })}\n`)
  const types = [
    '-p',
    'limiter-package/tsconfig.types.json',
    '--emitDeclarationOnly',
    '--outDir',
    join(folder, 'types'),
  ]
  execFileSync(join(repository, 'node_modules/.bin/tsc'), types, {
    cwd: repository,
    stdio: 'inherit',
  })
  for (const file of globSync('types/**/*.d.ts', { cwd: folder })) {
    const types = readFileSync(join(folder, file), 'utf8')
    writeFileSync(join(folder, file), types.replaceAll(/(from '\.[^']*)\.ts'/g, "$1.js'"))
  }
}

const { version, dependencies } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'))
const manifest = JSON.parse(readFileSync(join(repository, 'limiter-package/package.json'), 'utf8'))
const complete = { ...manifest, version, dependencies: { croner: dependencies.croner } }
writeFileSync(join(target, 'package.json'), `${JSON.stringify(complete, null, 2)}\n`)
cpSync(join(repository, 'limiter-package/README.md'), join(target, 'README.md'))
cpSync(join(repository, 'LICENSE'), join(target, 'LICENSE'))

const folder = resolve(process.argv[2] ?? join(repository, 'limiter-package'))
mkdirSync(folder, { recursive: true })
const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', folder], {
  cwd: target,
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'ignore'],
})
const [{ filename }] = JSON.parse(packed) as [{ filename: string }]
console.log(join(folder, filename))
