/** Requests without a valid key, of every kind, against the whole API. */
import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { flood, floodedFacades, keylessKinds, receiptProviders } from '../../bench/flood.ts'
import { noLimits, startPostern } from '../tools/postern.ts'

const policyFile = {
  policies: noLimits,
  providers: { sandbox: { kind: 'sandbox' }, ...receiptProviders },
  compat: floodedFacades,
}

/** The SQL of the calls. */
const textsOf = (calls: readonly unknown[][]): string[] =>
  calls.map(([asked]) =>
    typeof asked === 'string' ? asked : String((asked as pg.QueryConfig)?.text),
  )

test('I21: no kind of request without a key costs a statement in PostgreSQL, but for a share of one where the checksum is right', async () => {
  const postern = await startPostern({ policyFile, roles: { api: true, worker: false } })
  const query = vi.spyOn(pg.Client.prototype, 'query')
  // The process proves its readiness now and then, on a connection that it may open for that.
  await expect.poll(() => query.mock.calls.length).toBeGreaterThan(0)
  await postern.get('/nothing', { key: null })
  const aside = new Set(textsOf(query.mock.calls))
  const strangers = 'a wrong key with its checksum'
  const statementsFor = async (next: () => string, each: number) => {
    query.mockClear()
    const { sent } = await flood(postern.url, {
      perSecond: 1_000,
      seconds: each / 1_000,
      connections: 8,
      next,
    })
    expect(sent).toBe(each)
    return textsOf(query.mock.calls).filter((text) => !aside.has(text)).length
  }
  const statements: Record<string, number> = {}
  for (const [kind, next] of Object.entries(keylessKinds)) {
    // A kind that costs a statement does so every time.
    for (let tries = 0; tries < 3 && statements[kind] !== 0; tries++) {
      statements[kind] = await statementsFor(next, kind === strangers ? 30 : 8)
    }
  }
  query.mockRestore()
  const { [strangers]: ofStrangers = 0, ...others } = statements
  expect(Object.entries(others).filter(([, count]) => count > 0)).toEqual([])
  expect(ofStrangers).toBeLessThan(15)
  expect(ofStrangers).toBeGreaterThan(0)
})
