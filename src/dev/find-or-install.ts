import { execFileSync } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * The first of these programs on the PATH. No npm package contains them. If none is found, root on Debian gets the Debian
 * package. On other systems, this throws the advice.
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
  // Packages of Debian start a service at once and at every boot. This is the documented way to prevent it.
  const policyFile = '/usr/sbin/policy-rc.d'
  const hasPolicy = existsSync(policyFile)
  if (!hasPolicy) writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const aptGet = (...args: string[]) =>
    execFileSync('apt-get', ['-q', '-o', 'DPkg::Lock::Timeout=120', ...args], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
  try {
    aptGet('update')
    aptGet('install', '-y', '--no-install-recommends', debianPackage)
    const isService = existsSync(`/lib/systemd/system/${debianPackage}.service`)
    if (isService && existsSync('/run/systemd/system')) {
      execFileSync('systemctl', ['disable', '--now', debianPackage], { stdio: 'ignore' })
    }
  } catch (error) {
    throw new Error(advice, { cause: error })
  } finally {
    if (!hasPolicy) rmSync(policyFile, { force: true })
  }
  const program = findOnPath(...programs)
  if (!program) throw new Error(advice)
  return program
}

export function findOnPath(...programs: string[]): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean)
  return programs
    .flatMap((name) => folders.map((dir) => join(dir, name)))
    .find((file) => existsSync(file))
}
