/**
 * The one representation behind every kind of rule, and the decision over it.
 *
 * What a rule knows about a subject is a short list of cells, oldest first:
 *
 *     c0  t1 c1  t2 c2  …  tn cn
 *
 * A cell is a time and how many uses there were up to and including it (modulo), so the uses after
 * cell k are `cn - ck`. A cell leaves a window when its age reaches the window's length; what a window
 * holds is therefore `cn` minus the count of the last cell that has left it, found by bisection. The
 * wait for some permits is the time until the first cell leaves after which they fit: exact, and
 * monotone, because cells leave in order.
 *
 * The kinds differ only in the time a new cell gets and in when a use joins the last cell instead:
 *
 * - sliding: the time of the use; joins a cell of the very same time. Above `exactLimit` times are
 *   rounded *up* to a multiple of `granuleMs`, so that a window of any limit is at most 129 cells; a
 *   use then comes back at most one granule late, and never early: never more than the limit passes.
 * - fixed: the time of the use; joins as long as the last cell is in the window. One cell per window.
 * - calendar: the end of the period, with a window of length 0; joins the same way.
 * - lockout: as sliding; a refusal replaces all cells by one of `lockMark` uses whose time is such that
 *   it leaves the window exactly when the lock ends. So a lock is just a full window. With growth that
 *   cell stays in front, after the number of locks before it (c0), until as long again has passed.
 *
 * Numbers are narrow (times of 4 bytes modulo 2³² ms, counts of 1) or wide. Ages are signed, because
 * clocks step back; a cell further ahead than any of ours is written is ignored. What Redis keeps, and
 * the scripts decide on, stands in `redis-values.ts`; it is read into cells to tell what is left. The
 * tests hold both engines against a reference that keeps every event.
 */
import type { Part } from './plan.ts'

export const lockMark = 128
const hourMs = 3_600_000

/**
 * Many subjects in one buffer, each a record of its own, because a look that finds all it needs in one
 * place waits for memory once: the newest time, the times, the counts, how many cells, a mark.
 */
export interface CellStore {
  readonly wide: boolean
  /** Cells of a subject at most; it has one count more. */
  readonly stride: number
  /** From one subject to the next, in elements of `times`, of `counts`, of `newestAt` and in bytes. */
  readonly timeStride: number
  readonly countStride: number
  readonly newestStride: number
  readonly recordBytes: number
  times: Uint32Array | Float64Array
  counts: Uint8Array | Uint32Array
  /** How many cells there are, and the mark of the subject table: by `recordBytes`. */
  lengths: Uint8Array
  marks: Uint8Array
  /** The newest cell's time in full, because four bytes can't tell a forgotten subject from a fresh one. */
  newestAt: Float64Array
}

const timeOffset = 8

export function createCellStore(part: Part, slots: number): CellStore {
  const { wide, maxCells: stride } = part
  const [timeBytes, countBytes] = wide ? [8, 4] : [4, 1]
  const recordBytes = Math.ceil((endOfCounts(wide, stride) + 2) / 8) * 8
  return {
    wide,
    stride,
    timeStride: recordBytes / timeBytes,
    countStride: recordBytes / countBytes,
    newestStride: recordBytes / 8,
    recordBytes,
    ...viewsOf(new ArrayBuffer(slots * recordBytes), wide, stride),
  }
}

const endOfTimes = (wide: boolean, stride: number) => timeOffset + stride * (wide ? 8 : 4)
const endOfCounts = (wide: boolean, stride: number) =>
  endOfTimes(wide, stride) + (stride + 1) * (wide ? 4 : 1)

/** Each begins with the first subject's. */
function viewsOf(buffer: ArrayBuffer, wide: boolean, stride: number) {
  const counts = endOfTimes(wide, stride)
  const lengths = endOfCounts(wide, stride)
  return {
    newestAt: new Float64Array(buffer),
    times: wide ? new Float64Array(buffer, timeOffset) : new Uint32Array(buffer, timeOffset),
    counts: wide ? new Uint32Array(buffer, counts) : new Uint8Array(buffer, counts),
    lengths: new Uint8Array(buffer, lengths),
    marks: new Uint8Array(buffer, lengths + 1),
  }
}

/** Makes room for `slots` subjects. */
export function growCellStore(store: CellStore, slots: number): void {
  const buffer = new ArrayBuffer(slots * store.recordBytes)
  new Uint8Array(buffer).set(new Uint8Array(store.newestAt.buffer))
  Object.assign(store, viewsOf(buffer, store.wide, store.stride))
}

/** What a look at one subject found; one object is filled again and again. */
export interface Look {
  /** 0: the permits fit. */
  waitMs: number
  /** After an admission: how long the same would have to wait. */
  nextMs: number
  /** Position in the policy of the window that holds longest. */
  window: number
  /** Cells that no window counts any more. */
  gone: number
  /** Uses in the last window looked at. */
  used: number
  /** How far ahead of now the time of a new cell is. */
  leadMs: number
  /** Locks before, with growth, and how long they are still remembered. */
  locks: number
  keepMs: number
}

/**
 * Looks at one subject and changes nothing; `left` gets what an admission leaves, by window of the
 * policy. `again` is what the same request would ask for the next time.
 */
export function look(
  store: CellStore,
  slot: number,
  part: Part,
  nowMs: number,
  permits: number,
  again: number,
  left: number[],
  found: Look,
): void {
  const { times, counts, wide } = store
  const start = slot * store.timeStride
  const countStart = slot * store.countStride
  const lengthAt = slot * store.recordBytes
  const lead = leadMs(part, nowMs)
  found.leadMs = lead
  let cells = store.lengths[lengthAt] as number
  if (cells > 0) {
    const { longestMs, maxLockMs } = part
    if (nowMs - (store.newestAt[slot * store.newestStride] as number) >= longestMs + maxLockMs)
      cells = 0
    while (cells > 0 && age(store, start + cells - 1, nowMs) < -(lead + hourMs + maxLockMs)) cells--
    store.lengths[lengthAt] = cells
  }
  const total = counts[countStart + cells] as number
  found.waitMs = 0
  found.nextMs = 0
  found.gone = cells
  for (let index = 0; index < part.windows.length; index++) {
    const { limit, windowMs } = part.windows[index] as { limit: number; windowMs: number }
    let gone = 0
    // Most often the oldest cell still counts.
    let last = cells > 0 && age(store, start, nowMs) >= windowMs ? cells : 0
    while (gone < last) {
      const middle = (gone + last + 1) >>> 1
      const at = times[start + middle - 1] as number
      if ((wide ? nowMs - at : (nowMs - at) | 0) >= windowMs) gone = middle
      else last = middle - 1
    }
    const used = difference(wide, total, counts[countStart + gone] as number)
    found.used = used
    const windowLeft = limit - used - permits
    left[part.firstWindow + index] = windowLeft
    if (gone < found.gone) found.gone = gone
    if (windowLeft >= again) continue
    // The cell that must leave before the permits fit, now or the next time.
    const isRefused = windowLeft < 0 && permits > 0
    const room = limit - (isRefused ? permits : permits + again)
    let holder = gone
    if (!part.isWhole && !(part.rule.lock && used >= lockMark)) {
      while (
        holder < cells &&
        difference(wide, total, counts[countStart + holder + 1] as number) > room
      ) {
        holder++
      }
    }
    const waitMs =
      holder < cells ? windowMs - age(store, start + holder, nowMs) : found.leadMs + windowMs
    if (!isRefused) found.nextMs = Math.max(found.nextMs, waitMs)
    else if (waitMs > found.waitMs) {
      found.waitMs = waitMs
      found.window = part.firstWindow + index
    }
  }
  found.locks = 0
  found.keepMs = 0
  if (part.rule.lock && part.rule.lock.growth > 1) recallLock(store, slot, part, nowMs, found)
}

/** Finds the lock that growth remembers: the first cell, if it is one. */
function recallLock(store: CellStore, slot: number, part: Part, nowMs: number, found: Look): void {
  const countStart = slot * store.countStride
  const before = store.counts[countStart] as number
  if (store.lengths[slot * store.recordBytes] === 0) return
  const uses = difference(store.wide, store.counts[countStart + 1] as number, before)
  if (uses !== lockMark) return
  const keepMs =
    part.longestMs - age(store, slot * store.timeStride, nowMs) + lockLengthMs(part, before)
  if (keepMs <= 0) return
  found.locks = before + 1
  found.keepMs = keepMs
}

/** Takes what a look found to fit. Returns the time of the cell that the permits went into. */
export function take(
  store: CellStore,
  slot: number,
  part: Part,
  nowMs: number,
  permits: number,
  found: Look,
): number {
  const { wide, times, counts } = store
  const start = slot * store.timeStride
  const countStart = slot * store.countStride
  const lengthAt = slot * store.recordBytes
  let cells = store.lengths[lengthAt] as number
  const total = (counts[countStart + cells] as number) + permits
  if (cells > 0) {
    const newestAge = age(store, start + cells - 1, nowMs)
    if (part.isWhole ? newestAge < part.longestMs : -newestAge >= found.leadMs) {
      counts[countStart + cells] = total
      return nowMs - newestAge
    }
  }
  const kept = found.keepMs > 0 ? 1 : 0
  const drop = found.gone - 2 * kept
  if (drop > 0) {
    // A remembered lock stays, and before the first cell that counts there must be one that does not.
    if (kept === 0) counts[countStart] = counts[countStart + drop] as number
    for (let cell = kept; cell + drop < cells; cell++) {
      times[start + cell] = times[start + cell + drop] as number
      counts[countStart + cell + 1] = counts[countStart + cell + drop + 1] as number
    }
    cells -= drop
  }
  const at = nowMs + found.leadMs
  times[start + cells] = wide ? at : at % 4_294_967_296
  counts[countStart + cells + 1] = total
  store.lengths[lengthAt] = cells + 1
  store.newestAt[slot * store.newestStride] = at
  return at
}

/** Begins a lock on a refusal of a lockout that is not locked yet. Returns its length, or 0. */
export function beginLock(
  store: CellStore,
  slot: number,
  part: Part,
  nowMs: number,
  found: Look,
): number {
  if (!part.rule.lock || found.waitMs === 0 || found.used >= lockMark) return 0
  const lockMs = lockLengthMs(part, found.locks)
  const at = nowMs + lockMs - part.longestMs
  store.times[slot * store.timeStride] = store.wide ? at : at % 4_294_967_296
  store.counts[slot * store.countStride] = found.locks
  store.counts[slot * store.countStride + 1] = found.locks + lockMark
  store.lengths[slot * store.recordBytes] = 1
  store.newestAt[slot * store.newestStride] = at
  return lockMs
}

/** Gives back permits that went into the cell of time `at`, if that still has them. */
export function giveBack(
  store: CellStore,
  slot: number,
  part: Part,
  at: number,
  permits: number,
): void {
  const { wide, times, counts } = store
  const start = slot * store.timeStride
  const countStart = slot * store.countStride
  const lengthAt = slot * store.recordBytes
  const cells = store.lengths[lengthAt] as number
  const wanted = wide ? at : at % 4_294_967_296
  let cell = 0
  while (cell < cells && times[start + cell] !== wanted) cell++
  if (cell === cells) return
  const uses = usesOf(store, slot, cell)
  if (uses < permits || (part.rule.lock && uses === lockMark)) return
  for (let later = cell + 1; later <= cells; later++) {
    counts[countStart + later] = (counts[countStart + later] as number) - permits
  }
  if (uses > permits) return
  times.copyWithin(start + cell, start + cell + 1, start + cells)
  counts.copyWithin(countStart + cell + 1, countStart + cell + 2, countStart + cells + 1)
  store.lengths[lengthAt] = cells - 1
}

/** Copies a subject to a store of another form or size: the newest cells that fit. Older ones are beyond any limit of that size. */
export function copyCells(
  from: CellStore,
  fromSlot: number,
  to: CellStore,
  toSlot: number,
  nowMs: number,
): void {
  const length = from.lengths[fromSlot * from.recordBytes] as number
  const mostPerCell = to.wide ? 4_294_967_295 : 128
  const most = to.wide ? 4_294_967_295 : 255
  const uses: number[] = []
  let sum = 0
  for (let cell = length - 1; cell >= 0 && uses.length < to.stride; cell--) {
    const own = Math.min(usesOf(from, fromSlot, cell), mostPerCell)
    sum += own
    if (sum > most) break
    uses.unshift(own)
  }
  const first = length - uses.length
  const countStart = toSlot * to.countStride
  let total = first === 0 ? (from.counts[fromSlot * from.countStride] as number) : 0
  to.counts[countStart] = total
  for (const [cell, own] of uses.entries()) {
    const at = nowMs - age(from, fromSlot * from.timeStride + first + cell, nowMs)
    total += own
    to.times[toSlot * to.timeStride + cell] = to.wide ? at : at % 4_294_967_296
    to.counts[countStart + cell + 1] = total
  }
  to.lengths[toSlot * to.recordBytes] = uses.length
  to.newestAt[toSlot * to.newestStride] = from.newestAt[fromSlot * from.newestStride] as number
}

/** When everything in a window has left it: 0 if it is empty already. */
export function resetsInMs(
  store: CellStore,
  slot: number,
  windowMs: number,
  nowMs: number,
): number {
  const cells = store.lengths[slot * store.recordBytes] as number
  if (cells === 0) return 0
  return Math.max(0, windowMs - (nowMs - (store.newestAt[slot * store.newestStride] as number)))
}

function usesOf(store: CellStore, slot: number, cell: number): number {
  const first = slot * store.countStride + cell
  return difference(store.wide, store.counts[first + 1] as number, store.counts[first] as number)
}

function lockLengthMs(part: Part, locksBefore: number): number {
  const { lockMs, growth, maxLockMs } = part.rule.lock as NonNullable<Part['rule']['lock']>
  return Math.min(Math.floor(lockMs * growth ** locksBefore), maxLockMs)
}

function leadMs(part: Part, nowMs: number): number {
  if (part.calendar) return part.calendar.periodAt(nowMs).endsAt - nowMs
  if (part.granuleMs === 1) return 0
  return (part.granuleMs - (nowMs % part.granuleMs)) % part.granuleMs
}

function age(store: CellStore, index: number, nowMs: number): number {
  const at = store.times[index] as number
  return store.wide ? nowMs - at : (nowMs - at) | 0
}

function difference(wide: boolean, a: number, b: number): number {
  return wide ? (a - b) >>> 0 : (a - b) & 255
}
