import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { runProgram } from './server-process.ts'

/**
 * The first of these programs on the PATH. No npm package contains them. If none is found, root on Debian gets the
 * Debian package. On other systems, throws an Error with the advice.
 */
export function findOrInstall(
  programs: readonly string[],
  debianPackage: string,
  advice: string,
): string {
  const found = findOnPath(...programs)
  if (found) return found
  if (process.getuid?.() !== 0 || !findOnPath('apt-get')) throw new Error(advice)
  process.stderr.write(`${programs[0]} is not installed: installing it with apt-get\n`)
  try {
    // One at a time on this machine: a second `apt-get update` does not wait for the first, it fails.
    // A program that a package leaves running must not keep the lock.
    const lock = ['--close', '--timeout', '600', '/var/lock/postern-apt']
    execFileSync('flock', [...lock, 'sh', '-ec', aptScript, 'sh', debianPackage], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: installMs,
    })
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: Buffer }
    const reason = stderr?.toString().trim().split('\n').slice(-3).join('; ') || message
    throw new Error(`${advice} (apt-get: ${reason})`, { cause: error })
  }
  const program = findOnPath(...programs)
  if (!program) throw new Error(advice)
  return program
}

/** The caller stands still meanwhile, so an install that hangs must end. It includes the wait for others. */
const installMs = 900_000

/** Packages of Debian start a service at once and at every boot. The policy file is the documented way to prevent it. */
const aptScript = `
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod 755 $policy
  fi
  apt="apt-get -q -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 -o Acquire::http::Timeout=30"
  $apt update
  $apt install -y --no-install-recommends "$1"
  if [ -e "/lib/systemd/system/$1.service" ] && [ -d /run/systemd/system ]; then
    systemctl disable --now "$1"
  fi
`

/** The first of these programs on the PATH. A name may be an absolute path. */
export function findOnPath(...programs: string[]): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean)
  return programs
    .flatMap((name) => folders.map((dir) => resolve(dir, name)))
    .find((file) => existsSync(file))
}

/**
 * The module of an npm package. If Postern's own packages do not include it, npm installs it into `folder`, once. The
 * package may run its install script.
 */
export async function importOrInstall<Module>(
  wanted: { name: string; range: string; about: string },
  folder: string,
): Promise<Module> {
  const { name } = wanted
  try {
    return await import(name)
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw error
  }
  if (!existsSync(folder)) await installInto(folder, wanted)
  return await import(pathToFileURL(fileOf(name, folder)).href)
}

/** The file that an import of the package loads. Throws if the folder does not have the package. */
function fileOf(name: string, folder: string): string {
  return createRequire(join(folder, 'package.json')).resolve(name)
}

/** The folder gets its name at the end, so that an interrupted install is never used. */
async function installInto(
  folder: string,
  { name, range, about }: { name: string; range: string; about: string },
): Promise<void> {
  process.stderr.write(`${about}: npm installs ${name} into ${folder}, once\n`)
  const unfinished = `${folder}.unfinished`
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished)
  const manifest = { private: true, allowScripts: { [name]: true } }
  writeFileSync(join(unfinished, 'package.json'), JSON.stringify(manifest))
  const quietly = ['--no-audit', '--no-fund', '--loglevel', 'error']
  try {
    // With --prefix, npm would not read the machine's settings, such as a registry or its certificate.
    await runProgram(['npm', 'install', ...quietly, `${name}@${range}`], unfinished)
    fileOf(name, unfinished)
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string }
    const lines = (stderr || message).replaceAll('npm error ', '').split('\n').slice(0, 3)
    throw new Error(`npm could not install ${name} (${lines.join('; ')})`, { cause: error })
  }
  renameSync(unfinished, folder)
}
