import { expect, test } from 'vitest'
import { findFiles, readSource } from '../tools/source-files.ts'

interface LockedPackage {
  readonly name?: string
  readonly resolved?: string
  /** A package of this repository; `resolved` is its folder. */
  readonly link?: true
  readonly dev?: true
  readonly devOptional?: true
  readonly hasInstallScript?: true
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const { packages } = JSON.parse(readSource('package-lock.json')) as {
  packages: Record<string, LockedPackage>
}
const paths = Object.keys(packages)

/**
 * When npm writes the lockfile, it silently leaves out an optional package that it can't find. Then `npm ci` refuses
 * that lockfile on every machine.
 */
test('the lockfile holds the packages of every platform, not only of the one it was written on', () => {
  const optional = paths.flatMap((path) =>
    Object.keys(packages[path]?.optionalDependencies ?? {}).map((name) => ({ path, name })),
  )
  expect(optional.length).toBeGreaterThan(0)
  const missing = optional.filter(
    ({ name }) => !paths.some((path) => path.endsWith(`node_modules/${name}`)),
  )
  expect(missing).toEqual([])
})

test('the lockfile names no registry, so that everyone installs from their own', () => {
  expect(paths.filter((path) => packages[path]?.resolved && !packages[path].link)).toEqual([])
})

test('an install for production runs no script of a package but the scripts of Node and of a decoder, and none that reports it', () => {
  const scripts = paths.filter((path) => {
    const { hasInstallScript, dev, devOptional } = packages[path] as LockedPackage
    return hasInstallScript && !dev && !devOptional
  })
  expect(scripts).toEqual(['node_modules/msgpackr-extract', 'node_modules/node'])
})

test('the limiter has the version of Postern, and asks for the same packages', () => {
  const postern = JSON.parse(readSource('package.json'))
  const { version, dependencies, repository } = JSON.parse(readSource('src/limiter/package.json'))
  expect(postern).toMatchObject({ version, dependencies })
  // npm publishes with provenance only if a package names the repository that releases it.
  expect(repository).toEqual({ ...postern.repository, directory: 'src/limiter' })
  expect(packages['src/limiter']).toMatchObject({ version, dependencies })
})

test('the rules for SMS have the version of Postern, and ask for no package', () => {
  const postern = JSON.parse(readSource('package.json'))
  const { version, dependencies, repository } = JSON.parse(readSource('src/sms-rules/package.json'))
  expect([version, dependencies]).toEqual([postern.version, undefined])
  expect(repository).toEqual({ ...postern.repository, directory: 'src/sms-rules' })
  expect(packages['src/sms-rules']).toMatchObject({ version })
})

test('every file that names an image of Postern names its version', () => {
  const { version } = JSON.parse(readSource('package.json'))
  const naming = /(?:\bpostern:|newTag: )(\d+\.\d+\.\d+)/g
  const files = findFiles('{docker-compose.yml,deploy/kubernetes/*.yaml,docs/**/*.md}')
  const named = files.flatMap((file) =>
    [...readSource(file).matchAll(naming)].map(([, named]) => ({ file, named })),
  )
  expect(new Set(named.map(({ file }) => file)).size).toBeGreaterThan(2)
  expect(named.filter(({ named }) => named !== version)).toEqual([])
})

test('there is one Prometheus client, the official one under the name of the deprecated one', () => {
  const clients = paths.filter((path) =>
    /node_modules\/(prom-client|@prometheus-io\/client)$/.test(path),
  )
  expect(clients).toEqual(['node_modules/prom-client'])
  expect(packages['node_modules/prom-client']?.name).toBe('@prometheus-io/client')
})
