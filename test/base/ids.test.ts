import { expect, test } from 'vitest'
import { idFloor, isId, newId } from '../../src/base/ids.ts'

test('newId: 100,000 ids are different, well-formed UUIDs of version 7 and variant 10', () => {
  const ids = Array.from({ length: 100_000 }, () => newId())
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.filter((id) => !isId(id))).toEqual([])
  // Every value of the bits that version and variant leave free occurs.
  expect(new Set(ids.map((id) => id[14]))).toEqual(new Set(['7']))
  expect(new Set(ids.map((id) => id[19]))).toEqual(new Set(['8', '9', 'a', 'b']))
})

test('newId: ids of later milliseconds sort after ids of earlier ones', () => {
  const startMs = Date.UTC(2026, 0, 1)
  const ids = Array.from({ length: 5_000 }, (_, index) => newId(startMs + index))
  expect([...ids].sort()).toEqual(ids)
})

test('idFloor: not above an id of its millisecond, above every one of the millisecond before', () => {
  const nowMs = Date.UTC(2026, 10, 22)
  const ids = Array.from({ length: 1_000 }, () => newId(nowMs))
  expect(ids.every((id) => idFloor(nowMs) <= id)).toBe(true)
  expect(ids.every((id) => id < idFloor(nowMs + 1))).toBe(true)
})

test.each([
  '',
  'search',
  '019aa000-0000-4000-8000-000000000000',
  '019aa000-0000-7000-c000-000000000000',
  '019AA000-0000-7000-8000-000000000000',
  '019aa000-0000-7000-8000-000000000000\n',
  '{019aa000-0000-7000-8000-000000000000}',
])('isId: %j is none', (text) => {
  expect(isId(text)).toBe(false)
})
