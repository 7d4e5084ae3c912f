/**
 * The two other browser engines, from Debian: Firefox by WebDriver BiDi, and WebKitGTK by WebDriver. Playwright needs
 * its own builds of both, which a test may not download.
 */
import { existsSync } from 'node:fs'
import { findOrInstall } from '../../src/dev/find-or-install.ts'
import { findFreePort } from '../../src/dev/server-process.ts'
import { serverFolder, startDebianServer } from './debian-server.ts'
import { releaseLater } from './release.ts'

export interface OtherBrowser {
  open(url: string): Promise<void>
  /** The value of an expression in the page, as JSON. */
  evaluate<Value>(expression: string): Promise<Value>
  /** Presses a key for each character, in the focused element. */
  type(text: string): Promise<void>
  /** The window as PNG. */
  screenshot(): Promise<Buffer>
}

export const engines = { Firefox: launchFirefox, WebKit: launchWebKit }

/** Keys of WebDriver without a character. */
export const keys = { enter: '\uE007', backspace: '\uE003', left: '\uE012', tab: '\uE004' }

const keyActions = (text: string) => ({
  actions: [
    {
      type: 'key',
      id: 'keyboard',
      actions: [...text].flatMap((value) => [
        { type: 'keyDown', value },
        { type: 'keyUp', value },
      ]),
    },
  ],
})
const asJson = (expression: string) => `JSON.stringify({ value: ${expression} })`
const isThere = (port: number) =>
  fetch(`http://127.0.0.1:${port}/status`).then(
    () => true,
    () => false,
  )

async function launchFirefox(): Promise<OtherBrowser> {
  const program = findOrInstall(
    ['firefox-esr', 'firefox'],
    'firefox-esr',
    'This test needs Firefox on the PATH (Debian: apt-get install firefox-esr).',
  )
  const port = await findFreePort()
  const folder = serverFolder('firefox')
  const command = ['--headless', '--no-remote', '--profile', folder, '--remote-debugging-port']
  await startDebianServer(folder, [program, ...command, String(port)], () => isThere(port))
  const socket = new WebSocket(`ws://127.0.0.1:${port}/session`)
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = reject
  })
  releaseLater(() => socket.close())
  const waiting = new Map<number, (answer: BidiAnswer) => void>()
  socket.onmessage = ({ data }) => {
    const answer = JSON.parse(data) as BidiAnswer
    waiting.get(answer.id)?.(answer)
  }
  let asked = 0
  async function call<Result>(method: string, params: object): Promise<Result> {
    const id = ++asked
    const answered = new Promise<BidiAnswer>((resolve) => waiting.set(id, resolve))
    socket.send(JSON.stringify({ id, method, params }))
    const { type, result, message } = await answered
    if (type === 'error') throw new Error(`${method}: ${message}`)
    return result as Result
  }
  await call('session.new', { capabilities: {} })
  const tree = await call<{ contexts: { context: string }[] }>('browsingContext.getTree', {})
  const context = tree.contexts[0]?.context
  return {
    open: (url) => call('browsingContext.navigate', { context, url, wait: 'complete' }),
    async evaluate(expression) {
      const found = await call<{ result?: { value: string }; exceptionDetails?: { text: string } }>(
        'script.evaluate',
        { expression: asJson(expression), target: { context }, awaitPromise: false },
      )
      if (!found.result) throw new Error(found.exceptionDetails?.text)
      return JSON.parse(found.result.value).value
    },
    type: (text) => call('input.performActions', { context, ...keyActions(text) }),
    async screenshot() {
      const { data } = await call<{ data: string }>('browsingContext.captureScreenshot', {
        context,
      })
      return Buffer.from(data, 'base64')
    },
  }
}

interface BidiAnswer {
  id: number
  type: 'success' | 'error'
  result?: unknown
  message?: string
}

async function launchWebKit(): Promise<OtherBrowser> {
  const find = (name: string, debianPackage: string) =>
    findOrInstall(
      [name],
      debianPackage,
      `This test needs ${name} on the PATH (Debian: apt-get install ${debianPackage}).`,
    )
  const [xvfb, driver] = [find('Xvfb', 'xvfb'), find('WebKitWebDriver', 'webkit2gtk-driver')]
  const port = await findFreePort()
  // The number of a display is free if the port is: no other program uses five digits.
  await startDebianServer(serverFolder('xvfb'), [xvfb, `:${port}`, '-nolisten', 'tcp'], async () =>
    existsSync(`/tmp/.X11-unix/X${port}`),
  )
  await startDebianServer(
    serverFolder('webkit'),
    ['env', `DISPLAY=:${port}`, driver, `--port=${port}`],
    () => isThere(port),
  )
  let session = ''
  async function call<Value>(method: string, path: string, body?: object): Promise<Value> {
    const response = await fetch(`http://127.0.0.1:${port}/session${session}${path}`, {
      method,
      ...(body && { body: JSON.stringify(body) }),
    })
    const { value } = (await response.json()) as { value: Value & { message?: string } }
    if (!response.ok) throw new Error(`${path}: ${value.message}`)
    return value
  }
  const capabilities = { alwaysMatch: {} }
  const { sessionId } = await call<{ sessionId: string }>('POST', '', { capabilities })
  session = `/${sessionId}`
  releaseLater(() => call('DELETE', ''))
  return {
    open: (url) => call('POST', '/url', { url }),
    async evaluate(expression) {
      const script = `return ${asJson(expression)}`
      return JSON.parse(await call<string>('POST', '/execute/sync', { script, args: [] })).value
    },
    type: (text) => call('POST', '/actions', keyActions(text)),
    screenshot: async () => Buffer.from(await call<string>('GET', '/screenshot'), 'base64'),
  }
}
