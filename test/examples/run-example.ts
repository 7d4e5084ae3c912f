/** Tools that run examples/: a separate site for the page, and the work of a bundler. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import type { Plugin } from 'rolldown'
import { inject } from 'vitest'
import { findFreePort } from '../../src/dev/server-process.ts'
import { isOpen } from '../tools/debian-server.ts'
import { listen } from '../tools/listen.ts'
import type { Postern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { releaseLater } from '../tools/release.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { eventually } from '../tools/wait.ts'

const examples = join(repositoryRoot, 'examples')
const contentTypes = { html: 'text/html', js: 'text/javascript', css: 'text/css' }
type Files = Readonly<Record<string, string>>

/** A program of examples/ as a process. It is killed after the test. */
export function startExample(
  file: string,
  given: Files,
  args: readonly string[] = [],
  cwd?: string,
) {
  const env = { ...process.env, ...given }
  const options = { cwd: cwd ?? repositoryRoot, env }
  const child = spawn('node', [file, ...args], { ...options, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  releaseLater(() => {
    child.kill('SIGKILL')
    return ended
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text))
  return { child, ended, output: () => output }
}

/** A server of examples/ as a process that listens at a free port. */
export async function startServer(
  file: string,
  env: (origin: string) => Files | Promise<Files>,
  cwd?: string,
) {
  const port = await findFreePort()
  const origin = `http://localhost:${port}`
  const given = { PORT: String(port), ...(await env(origin)) }
  const { child, ended, output } = startExample(file, given, [], cwd)
  await eventually(() => isOpen(port))
  return {
    origin,
    output,
    /** The exit code after a SIGTERM. */
    async terminate() {
      child.kill('SIGTERM')
      const [code] = await ended
      return code
    },
  }
}

/** The server of examples/plain-form over this Postern. */
export const startPlainForm = (postern: Postern) =>
  startServer('examples/plain-form/server.mjs', async (origin) => ({
    POSTERN_URL: postern.url,
    PUBLISHABLE_KEY: await publishableKey(postern.database, { origins: [origin] }),
    SECRET_KEY: postern.key,
  }))

/** A site with a separate publishable key. Its posts go to the server of examples/plain-form. */
export async function servePages(postern: Postern) {
  const behind = await startPlainForm(postern)
  let files: Files = {}
  const server = createServer(async (request, response) => {
    if (request.method === 'POST') {
      const body = new Uint8Array(await buffer(request))
      const headers = { 'content-type': request.headers['content-type'] ?? '' }
      const answer = await fetch(behind.origin + request.url, { method: 'POST', headers, body })
      response.writeHead(answer.status).end(await answer.text())
      return
    }
    const name = request.url === '/' ? 'index.html' : (request.url ?? '').slice(1)
    const type = contentTypes[name.split('.').at(-1) as keyof typeof contentTypes]
    if (files[name] === undefined) response.writeHead(404).end()
    else response.writeHead(200, { 'content-type': `${type}; charset=utf-8` }).end(files[name])
  })
  const origin = (await listen(server)).replace('127.0.0.1', 'localhost')
  const key = await publishableKey(postern.database, { origins: [origin] })
  return {
    origin,
    key,
    serve(served: Files): void {
      files = served
    },
    /** The files of an example, with this Postern and this key in place of the ones that it names. */
    folder(name: string): Files {
      const words = { 'https://codes.example': postern.url, 'ppk_…': key }
      return Object.fromEntries(
        readdirSync(join(examples, name)).map((file) => [
          file,
          replaced(readFileSync(join(examples, name, file), 'utf8'), words),
        ]),
      )
    },
  }
}

const replaced = (text: string, words: Files) =>
  Object.entries(words).reduce((result, [from, to]) => result.replaceAll(from, to), text)

/**
 * Copies of these examples with the packages that all of them need, and `more`, installed once. Returns their folder.
 */
export async function installExamples(names: readonly string[], more: Files = {}): Promise<string> {
  const folder = mkdtempSync(join(inject('runFolder'), 'examples-'))
  const dependencies = { ...more }
  for (const name of names) {
    cpSync(join(examples, name), join(folder, name), { recursive: true })
    const text = readFileSync(join(examples, name, 'package.json'), 'utf8')
    Object.assign(dependencies, JSON.parse(text).dependencies)
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }))
  const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']
  await promisify(execFile)('npm', ['install', ...flags], { cwd: folder })
  return folder
}

/** The output of Vite: the page, and one script. */
export async function bundleExample(
  folder: string,
  name: string,
  url: string,
  key: string,
): Promise<Files> {
  const env = { VITE_POSTERN_URL: url, VITE_PUBLISHABLE_KEY: key }
  const html = readFileSync(join(folder, name, 'index.html'), 'utf8')
  const input = /src="\/(main\.\w+)"/.exec(html)?.[1] ?? ''
  const { rolldown } = await import('rolldown')
  const build = await rolldown({
    input: join(folder, name, input),
    platform: 'browser',
    logLevel: 'silent',
    tsconfig: false,
    transform: {
      // StrictMode mounts twice only in development.
      define: {
        'import.meta.env': JSON.stringify(env),
        'process.env.NODE_ENV': '"development"',
        // Flags of Vue, which Vue's plugin sets.
        __VUE_OPTIONS_API__: 'true',
        __VUE_PROD_DEVTOOLS__: 'false',
        __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: 'false',
      },
    },
    plugins: name === 'vue' ? [vueFiles(folder)] : [],
  })
  const { output } = await build.generate({ format: 'esm' })
  await build.close()
  const words = { [`/${input}`]: '/bundle.js', '%VITE_POSTERN_URL%': url }
  return { 'index.html': replaced(html, words), 'bundle.js': output[0].code }
}

/** Compiled like Vite's plugin does, by Vue's own compiler. */
function vueFiles(folder: string): Plugin {
  const { parse, compileScript } = createRequire(join(folder, 'package.json'))('vue/compiler-sfc')
  const isCustomElement = (tag: string) => tag === 'postern-code'
  return {
    name: 'vue-files',
    transform: {
      filter: { id: /\.vue$/ },
      handler(code: string, id: string) {
        const templateParseOptions = { isCustomElement }
        const { descriptor } = parse(code, { filename: id, templateParseOptions })
        const script = compileScript(descriptor, { id, inlineTemplate: true })
        return { code: script.content, moduleType: 'js' }
      },
    },
  }
}
