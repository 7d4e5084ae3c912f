import { expect, test, vi } from 'vitest'
import { createSlots, type Slot, type SlotRequest } from '../../src/delivery/lines.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const bulk: SlotRequest = { isUrgent: false, weight: 1, timeoutMs: 60_000, isPatient: true }
const code: SlotRequest = { ...bulk, isUrgent: true }

/** Adds the name to the list when a slot is granted, and `-name` when the message is sent away. */
function line(slots: ReturnType<typeof createSlots>) {
  releaseLater(() => slots.close())
  const entered: string[] = []
  const held: Slot[] = []
  return {
    entered,
    async take(name: string, request: SlotRequest) {
      const slot = await slots.take(request)
      entered.push(slot.granted ? name : `-${name}`)
      held.push(slot)
      return slot
    },
    async leaveAll() {
      for (let slot = held.shift(); slot; slot = held.shift()) {
        if (slot.granted) slot.leave()
        await new Promise(setImmediate)
      }
    },
  }
}

test('slots: no more than there are are held at once, and first come is first served, codes before bulk notices', async () => {
  const slots = createSlots(() => 2, 10)
  const { entered, take, leaveAll } = line(slots)
  await take('a', bulk)
  await take('b', bulk)
  for (const name of ['c', 'd']) void take(name, bulk)
  for (const name of ['code 1', 'code 2']) void take(name, code)
  await new Promise(setImmediate)
  expect(entered).toEqual(['a', 'b'])
  await leaveAll()
  expect(entered).toEqual(['a', 'b', 'code 1', 'code 2', 'c', 'd'])
})

test('slots: a slot left twice is one slot', async () => {
  const slots = createSlots(() => 1, 10)
  const { entered, take } = line(slots)
  const first = await take('a', bulk)
  void take('b', bulk)
  void take('c', bulk)
  if (first.granted) {
    first.leave()
    first.leave()
  }
  await new Promise(setImmediate)
  expect(entered).toEqual(['a', 'b'])
})

test('slots: one that needs three waits until three are free, those behind it too; no message is too heavy', async () => {
  const slots = createSlots(() => 3, 10)
  const { entered, take, leaveAll } = line(slots)
  const first = await take('a', bulk)
  await take('b', bulk)
  void take('heavy', { ...bulk, weight: 7 })
  void take('c', bulk)
  if (first.granted) first.leave()
  await new Promise(setImmediate)
  expect(entered).toEqual(['a', 'b'])
  await leaveAll()
  expect(entered).toEqual(['a', 'b', 'heavy', 'c'])
})

test('slots: a code passes a bulk notice that waits for more slots than are free', async () => {
  const slots = createSlots(() => 9, 10)
  const { entered, take, leaveAll } = line(slots)
  await take('a', { ...bulk, weight: 7 })
  void take('heavy', { ...bulk, weight: 4 })
  void take('code 1', code)
  void take('code 2', code)
  void take('code 3', code)
  await new Promise(setImmediate)
  expect(entered).toEqual(['a', 'code 1', 'code 2'])
  void take('light', bulk)
  await leaveAll()
  expect(entered).toEqual(['a', 'code 1', 'code 2', 'code 3', 'heavy', 'light'])
})

test('slots: more of them for codes: a code does not wait for bulk notices that hold all others, and bulk waits for both', async () => {
  const slots = createSlots((isUrgent) => (isUrgent ? 3 : 2), 10)
  const { entered, take, leaveAll } = line(slots)
  for (const name of ['a', 'b', 'c']) void take(name, bulk)
  for (const name of ['code 1', 'code 2']) void take(name, code)
  await new Promise(setImmediate)
  expect(entered).toEqual(['a', 'b', 'code 1'])
  await leaveAll()
  expect(entered).toEqual(['a', 'b', 'code 1', 'code 2', 'c'])
})

test('slots: the time of one that waits ends → it goes without, and the next is not held up', async () => {
  const slots = createSlots(() => 2, 10)
  const { entered, take } = line(slots)
  await take('a', bulk)
  void take('heavy', { ...bulk, weight: 2, timeoutMs: 20 })
  void take('b', bulk)
  await eventually(() => entered.length === 3)
  expect(entered).toEqual(['a', '-heavy', 'b'])
})

test('slots: a full line sends away, each later than the one before; bulk notices take no place in the line of codes', async () => {
  const slots = createSlots(() => 1, 2)
  const { entered, take, leaveAll } = line(slots)
  await take('a', bulk)
  void take('b', bulk)
  void take('c', bulk)
  const away = [await take('d', bulk), await take('e', bulk)]
  const waits = away.map((slot) => (slot.granted ? 0 : slot.retryInMs))
  expect(waits[0]).toBeGreaterThan(0)
  expect(waits[1]).toBeGreaterThan(waits[0] as number)
  void take('code 1', code)
  void take('code 2', code)
  await take('code 3', code)
  await leaveAll()
  expect(entered).toEqual(['a', '-d', '-e', '-code 3', 'code 1', 'code 2', 'b', 'c'])
})

test('slots: those sent away come back as the line moves, by the usual time of a slot', async () => {
  vi.useFakeTimers()
  const slots = createSlots(() => 2, 2)
  const { take } = line(slots)
  const [first] = await Promise.all([take('a', bulk), take('b', bulk)])
  vi.advanceTimersByTime(1_100)
  // A tenth of the range from 100 ms to 1,100 ms.
  if (first.granted) first.leave()
  await take('c', bulk)
  for (const name of ['d', 'e']) void take(name, bulk)
  expect(await Promise.all([take('f', bulk), take('g', bulk)])).toEqual([
    { granted: false, retryInMs: 100 },
    { granted: false, retryInMs: 200 },
  ])
  slots.close()
})

test('slots: one that needs more slots than are free is dismissed → the one behind it goes on', async () => {
  const slots = createSlots(() => 2, 10)
  const { entered, take } = line(slots)
  await take('a', bulk)
  void take('heavy', { ...bulk, weight: 2, isPatient: false })
  void take('light', bulk)
  slots.dismiss()
  await eventually(() => entered.length === 3)
  expect(entered).toEqual(['a', '-heavy', 'light'])
})

test('slots: dismiss sends away those that can go elsewhere; close sends away all and lets none in', async () => {
  const slots = createSlots(() => 1, 10)
  const { entered, take, leaveAll } = line(slots)
  await take('a', bulk)
  void take('mobile', { ...bulk, isPatient: false })
  void take('patient', bulk)
  slots.dismiss()
  await eventually(() => entered.length === 2)
  expect(entered).toEqual(['a', '-mobile'])
  slots.close()
  await eventually(() => entered.length === 3)
  await leaveAll()
  await take('late', bulk)
  expect(entered).toEqual(['a', '-mobile', '-patient', '-late'])
})
