/**
 * Mutants of the code field, which runs in Chromium. The bundle has all mutants. Each page is given the active one, and
 * reports the mutants that it reaches, so that Stryker knows which browser tests to run.
 */
import { type Browser, type BrowserContext, chromium } from 'playwright-core'
import { activeMutant, reached } from './stryker-state.ts'

const { launch } = chromium
if (launch.name !== 'launchWithMutants') {
  chromium.launch = async function launchWithMutants(options) {
    const browser = await launch.call(chromium, options)
    const newContext = browser.newContext.bind(browser) as Browser['newContext']
    browser.newContext = async (options) => withMutants(await newContext(options))
    return browser
  }
}

async function withMutants(context: BrowserContext): Promise<BrowserContext> {
  if (activeMutant() !== undefined) context.setDefaultTimeout(Number(process.env.TEST_WAIT_MS))
  await context.exposeFunction('reachedMutant', (mutant: string) => reached([mutant]))
  await context.addInitScript((activeMutant) => {
    const known = new Set<PropertyKey>()
    const { reachedMutant } = globalThis as unknown as { reachedMutant: (id: PropertyKey) => void }
    const set = (_: object, id: PropertyKey) => {
      if (!known.has(id)) reachedMutant(id)
      return Boolean(known.add(id))
    }
    const counts = activeMutant === undefined ? new Proxy({}, { set }) : {}
    const mutantCoverage = { static: counts, perTest: {} }
    Object.assign(globalThis, { __stryker__: { activeMutant, mutantCoverage } })
  }, activeMutant())
  return context
}
