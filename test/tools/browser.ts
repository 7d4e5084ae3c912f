import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Browser, chromium, type Page } from 'playwright-core'
import { findOrInstall } from '../../src/dev/find-or-install.ts'
import { releaseLater } from './release.ts'

/**
 * A real Chromium: Debian's, because a test may download nothing from a vendor. Every name that ends in `.test` or
 * `.example` leads to this machine, and no other name leads anywhere.
 */
export async function launchBrowser(): Promise<Browser> {
  const executablePath = findOrInstall(
    ['chromium', 'chromium-browser', 'google-chrome'],
    'chromium',
    'The browser tests need Chromium on the PATH (Debian: apt-get install chromium).',
  )
  const browser = await chromium.launch({
    executablePath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--no-proxy-server',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--host-resolver-rules=MAP *.test 127.0.0.1, MAP *.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
    ],
  })
  releaseLater(() => browser.close())
  return browser
}

export interface PageServer {
  readonly port: number
  /** The `Origin` of each request that had one. */
  readonly origins: string[]
}

/** Serves one HTML page at every path and name, e.g. as `http://shop.example:<port>`. `html` may change between visits. */
export async function servePage(
  html: () => string = () => '<!doctype html><title>page</title>',
): Promise<PageServer> {
  const origins: string[] = []
  const server = createServer((request, response) => {
    if (request.headers.origin !== undefined) origins.push(request.headers.origin)
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  releaseLater(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, origins }
}

export interface OpenPage {
  readonly page: Page
  /** The lines that the browser has written into its console. */
  readonly messages: string[]
}

/** The page at this address, in a separate profile. */
export async function openPage(browser: Browser, url: string): Promise<OpenPage> {
  const context = await browser.newContext()
  const page = await context.newPage()
  const messages: string[] = []
  page.on('console', (message) => messages.push(message.text()))
  page.on('pageerror', (error) => messages.push(String(error)))
  await page.goto(url)
  return { page, messages }
}
