import type * as repeating from '../../src/base/repeat.ts'

/**
 * A stand-in for `repeat` whose loops pause a twentieth of their time: for tests of what a pass does, not
 * of when it comes. A file that wants it says so before its imports:
 *
 *     vi.mock(import('../../src/base/repeat.ts'), async (original) =>
 *       (await import('./quick-loops.ts')).quickLoops(original),
 *     )
 */
export async function quickLoops(
  original: () => Promise<typeof repeating>,
): Promise<typeof repeating> {
  const { repeat } = await original()
  return {
    repeat: (pass, firstWithinMs) =>
      repeat(async (signal) => (await pass(signal)) / 20, firstWithinMs / 20),
  }
}
