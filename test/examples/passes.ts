/** The programs of examples/passes check passes of a running Postern. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { passFor } from '../tools/pass.ts'
import { startPostern } from '../tools/postern.ts'
import { repositoryRoot } from '../tools/source-files.ts'

const run = promisify(execFile)

/**
 * The first word that a program prints for each pass. The passes: a good one, the same again, one with the claims of
 * another, one of another scene, a text that is no pass. Then another good one, and a good one of another app.
 */
export async function judgements(
  program: string,
  args: readonly string[],
  cwd = repositoryRoot,
): Promise<{ ofItsApp: string[]; ofAnotherApp: string[] }> {
  const postern = await startPostern()
  const good = await passFor(postern, '+8613800138000', 'signup')
  const second = await passFor(postern, '+8613800138001', 'signup')
  const otherScene = await passFor(postern, '+8613800138002', 'login')
  const [header, , signature] = second.split('.')
  const altered = [header, good.split('.')[1], signature].join('.')
  const judge = async (app: string, passes: readonly string[]) => {
    const env = { ...process.env, POSTERN_URL: postern.url, APP: app }
    const { stdout } = await run(program, [...args, ...passes], { cwd, env })
    return stdout
      .trim()
      .split('\n')
      .map((line) => /^\w+/.exec(line)?.[0] ?? line)
  }
  return {
    ofItsApp: await judge('default', [good, good, altered, otherScene, 'a.b.c', second]),
    ofAnotherApp: await judge('shop', [good]),
  }
}
