/**
 * `npm run pages`: the cost of each page for a browser with an empty cache. Measures the time of the first paint, the
 * layout shift in the second after it, and the bytes and requests until then. It leaves out the state that the demo
 * page reads again and again, and the pages that VitePress loads for a later click. Bytes of Postern are without the
 * bundles of Swagger UI and VitePress. Starts a demo, or uses a running one:
 *
 *   npm run pages -- --demo http://localhost:3000 --admin http://localhost:9100
 */
import { parseArgs } from 'node:util'
import type { Browser } from 'playwright-core'
import { openBrowser, startDemo } from './harness/demo.ts'
import { openTable } from './harness/table.ts'

const visits = 3
/** The script of a first page ends in `.lean.js`. */
const notForThisPage = /\/demo\/state$|\.md\.[\w-]+\.js$/
const librariesFiles = /swagger-ui|assets\/chunks\/(framework|theme)\./

/** Runs in the page: the time of the first paint; NaN if there was none in 20 s. */
const firstPaint = `new Promise((resolve) => {
  new PerformanceObserver((list) => {
    const paint = list.getEntriesByName('first-contentful-paint')[0]
    if (paint) resolve(paint.startTime)
  }).observe({ type: 'paint', buffered: true })
  setTimeout(() => resolve(NaN), 20_000)
})`

/** Runs in the page: its layout shift, a second after the first paint. */
const layoutShift = `new Promise((resolve) => {
  let sum = 0
  const observer = new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) sum += value
  })
  observer.observe({ type: 'layout-shift', buffered: true })
  setTimeout(() => resolve(sum), 1_000)
})`

const { values } = parseArgs({ options: { demo: { type: 'string' }, admin: { type: 'string' } } })
const own = values.demo ? undefined : await startDemo()
const demo = values.demo ?? own?.demo ?? ''
const admin = values.admin ?? own?.admin ?? 'http://localhost:9100'
const pages = {
  'demo page': `${demo}/`,
  'demo page, in Chinese': `${demo}/?lang=zh`,
  'description of the API': `${demo}/docs`,
  guide: `${demo}/docs/guide/`,
  'console, log-in': `${admin}/`,
}
try {
  const browser = await openBrowser()
  const row = openTable(
    `Page (median of ${visits} first visits)`,
    'kB',
    'kB of ours',
    'requests',
    'ms to paint',
    'shift',
  )
  for (const [name, url] of Object.entries(pages)) {
    const seen: Awaited<ReturnType<typeof look>>[] = []
    for (let visit = 0; visit < visits; visit++) seen.push(await look(browser, url))
    const status = seen[0]?.status
    const of = (what: 'bytes' | 'ourBytes' | 'requests' | 'paintMs' | 'shift') =>
      median(seen.map((one) => one[what]))
    const kB = (what: 'bytes' | 'ourBytes') => (of(what) / 1_000).toFixed(1)
    if (status !== 200) row(`${name}: answers ${status}`, '-', '-', '-', '-', '-')
    else {
      const paintMs = of('paintMs').toFixed(0)
      row(name, kB('bytes'), kB('ourBytes'), of('requests'), paintMs, of('shift').toFixed(3))
    }
  }
  await browser.close()
} finally {
  await own?.stop()
}

/** One visit with an empty cache. */
async function look(browser: Browser, url: string) {
  const context = await browser.newContext()
  const page = await context.newPage()
  const network = await context.newCDPSession(page)
  let bytes = 0
  let ourBytes = 0
  let requests = 0
  const foreign = new Set<string>()
  const uncounted = new Set<string>()
  network.on('Network.responseReceived', ({ requestId, response }) => {
    if (librariesFiles.test(response.url)) foreign.add(requestId)
    if (notForThisPage.test(response.url)) uncounted.add(requestId)
  })
  network.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (uncounted.has(requestId)) return
    bytes += encodedDataLength
    if (!foreign.has(requestId)) ourBytes += encodedDataLength
    requests++
  })
  await network.send('Network.enable')
  // Chromium does not paint what another window covers.
  await page.bringToFront()
  const answer = await page.goto(url, { waitUntil: 'load' })
  const paintMs = Number(await page.evaluate(firstPaint))
  const shift = Number(await page.evaluate(layoutShift))
  await context.close()
  return { status: answer?.status(), bytes, ourBytes, requests, paintMs, shift }
}

function median(numbers: number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
}
