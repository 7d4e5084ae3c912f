import { expect, test } from 'vitest'
import { barsOf } from '../../web/demo/bars.ts'
import type { Lane } from '../../web/demo/demo-state.ts'

const lane: Lane = {
  ...{ policy: 'p', rule: 'r', mode: 'enforce', kind: 'sliding', window: '60s', windowMs: 60_000 },
  ...{ limit: 3, used: 2, resetsInMs: 50_000, takenAtMs: [90_000, 70_000] },
}
const endsOf = (kind: Lane['kind'], windowMs = 60_000) =>
  barsOf({ ...lane, kind, windowMs }, 100_000).map(({ toMs }) => toMs)

test('the bars of a lane begin when a permit was taken, and end when its kind of rule brings it back', () => {
  expect(barsOf(lane, 100_000)[0]).toEqual({ fromMs: 90_000, toMs: 150_000 })
  expect(endsOf('sliding')).toEqual([150_000, 130_000])
  expect(endsOf('fixed')).toEqual([150_000, 150_000])
  expect(endsOf('calendar', 0)).toEqual([150_000, 150_000])
  expect(endsOf('bucket')).toEqual([150_000, 130_000])
  expect(endsOf('bucket', 30_000)).toEqual([150_000, 140_000])
})
