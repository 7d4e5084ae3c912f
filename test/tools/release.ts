import { setTimeout } from 'node:timers/promises'

/**
 * Closes everything that a test has opened, last opened first: at the end of the test if it was opened in one,
 * otherwise at the end of the file. Every release is attempted. The first error is thrown at the end.
 */
type Release = () => unknown

const ofFile: Release[] = []
let ofTest: Release[] | undefined

export function releaseLater(release: Release): void {
  ;(ofTest ?? ofFile).push(release)
}

/** Returns what was just opened, and closes it later. */
export function closeLater<Opened extends { close(): unknown }>(opened: Opened): Opened
export function closeLater<
  How extends string,
  Opened extends { readonly [name in How]: (...none: never[]) => unknown },
>(opened: Opened, how: How): Opened
export function closeLater(opened: Record<string, () => unknown>, how = 'close') {
  releaseLater(() => opened[how]?.())
  return opened
}

export function beginTest(): void {
  ofTest = []
}

export async function endTest(): Promise<void> {
  const releases = ofTest ?? []
  ofTest = undefined
  await runAll(releases)
}

export async function endFile(): Promise<void> {
  await runAll(ofFile)
}

/** A release that hangs is named, and everything opened before it is still closed. */
async function tooLate(release: Release, signal: AbortSignal): Promise<void> {
  try {
    await setTimeout(40_000, undefined, { signal })
  } catch {
    return
  }
  throw new Error(`not closed within 40 s: ${release}`)
}

async function runAll(releases: Release[]): Promise<void> {
  const errors: unknown[] = []
  for (let release = releases.pop(); release; release = releases.pop()) {
    const ended = new AbortController()
    try {
      await Promise.race([release(), tooLate(release, ended.signal)])
    } catch (error) {
      errors.push(error)
    } finally {
      ended.abort()
    }
  }
  if (errors.length > 0) throw errors[0]
}
