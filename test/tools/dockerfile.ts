/** Executes the lines of the Dockerfile without a container engine: each stage is a folder. */
import { execFile } from 'node:child_process'
import { cp, mkdir, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { readSource, repositoryRoot } from './source-files.ts'

const run = promisify(execFile)

export interface Stage {
  /** Its working folder, `/app` in the image. */
  readonly folder: string
  /** The given environment and the ENV of the stage. */
  readonly env: Record<string, string>
  command: string[]
}

/**
 * The stages by name; the last one is `image`. Knows the instructions that the Dockerfile has, and throws on another. An
 * `npm ci` with the development packages takes half a minute, and the repository has done it: the stage gets the
 * repository's node_modules.
 */
export async function buildStages(
  folder: string,
  env: Record<string, string>,
): Promise<ReadonlyMap<string, Stage>> {
  const stages = new Map<string, Stage>()
  let stage: Stage = { folder, env, command: [] }
  for (const [, word = '', rest = ''] of instructionsOf(readSource('Dockerfile'))) {
    const args = rest.split(' ')
    const inStage = (text: string) => text.replaceAll('/app', stage.folder)
    if (word === 'FROM') {
      const [base = '', , name = 'image'] = args
      stage = await startStage(join(folder, name), stages.get(base), env)
      stages.set(name, stage)
    } else if (word === 'COPY') {
      await copy(args, stage, stages)
    } else if (word === 'RUN' && rest === 'npm ci --ignore-scripts') {
      await symlink(join(repositoryRoot, 'node_modules'), join(stage.folder, 'node_modules'))
    } else if (word === 'RUN') {
      await run('bash', ['-c', inStage(rest)], { cwd: stage.folder, env: stage.env })
    } else if (word === 'ENV') {
      for (const setting of args) {
        const [name = '', value = ''] = setting.split('=')
        stage.env[name] = inStage(value).replace('$PATH', stage.env.PATH ?? '')
      }
    } else if (word === 'CMD') {
      stage.command = JSON.parse(rest)
    } else if (!['WORKDIR', 'USER', 'EXPOSE', 'HEALTHCHECK'].includes(word)) {
      throw new Error(`the Dockerfile has an instruction ${word}, which this does not know`)
    }
  }
  return stages
}

const instructionsOf = (dockerfile: string) => dockerfile.matchAll(/^([A-Z]+) (.*)$/gm)

async function startStage(
  folder: string,
  base: Stage | undefined,
  env: Record<string, string>,
): Promise<Stage> {
  await mkdir(folder, { recursive: true })
  if (base) await cp(base.folder, folder, { recursive: true })
  return { folder, env: { ...(base?.env ?? env) }, command: [] }
}

async function copy(args: string[], stage: Stage, stages: Map<string, Stage>): Promise<void> {
  const from = stages.get(/^--from=(.*)/.exec(args[0] ?? '')?.[1] ?? '')
  const names = from ? args.slice(1) : args
  const to = join(stage.folder, names.at(-1) ?? '')
  for (const name of names.slice(0, -1)) {
    if (from) await linkFolder(join(from.folder, name.replace('/app', '')), to)
    else await copyFromContext(name, to)
  }
}

/** Hard links: thousands of files would take seconds. */
async function linkFolder(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true })
  await run('cp', ['-al', `${from}/.`, to])
}

/** The parts of a file or folder that .dockerignore does not leave out. */
async function copyFromContext(name: string, folder: string): Promise<void> {
  const lines = readSource('.dockerignore').split('\n').filter(Boolean)
  const allowed = lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
  for (const path of name === '.' ? allowed : allowed.filter((one) => one === name)) {
    await cp(join(repositoryRoot, path), join(folder, path), { recursive: true })
  }
  for (const path of lines.filter((line) => /^[a-z]/.test(line))) {
    await rm(join(folder, path), { recursive: true, force: true })
  }
}
