/**
 * What the limiter keeps in Redis: one value per part and subject, whose first byte names its form.
 *
 *     times   form | t1 t2 … tn                     the newest uses of exact windows, oldest first
 *     locks   form | end locks | t1 t2 … tn         the same after the end of the last lock, and how many it was
 *     counted form | c0 | t1 c1 t2 c2 … tn cn       cells (see cells.ts), times of 6 bytes and counts of 4
 *
 * A window of limit L is full if the L-th newest time is younger than the window, so the newest L times
 * are all that an exact rule needs, and one look per window decides. They have 4 bytes, modulo 2³² ms,
 * or 6 where the oldest of them could be too old for that. Ages are signed, because clocks step back.
 * Permits of one call are as many equal times. Nothing in a value depends on the order of rules.
 *
 * The scripts decide on values; what is left and when more comes free is read from them here, as cells,
 * by the code of the in-process limiter. A reload that gives a rule another form rewrites its values.
 */
import { type CellStore, copyCells, createCellStore, lockMark } from './cells.ts'
import { LimiterUnavailable } from './limiter.ts'
import { narrowReachMs, type Part } from './plan.ts'

export interface Form {
  /** The first byte of a value. */
  readonly code: number
  /** Bytes before the first time. */
  readonly head: number
  /** Bytes of a time; 0: cells. */
  readonly size: number
}

const forms: readonly Form[] = [
  { code: 0, head: 1, size: 4 },
  { code: 1, head: 1, size: 6 },
  { code: 2, head: 5, size: 0 },
  { code: 3, head: 6, size: 4 },
  { code: 4, head: 8, size: 6 },
]

export function formOf(part: Part): Form {
  // A time goes when newer ones push it out, and each of them came within a window of the one before.
  const reachMs = Math.max(mostTimes(part) * part.longestMs, part.rule.lock?.maxLockMs ?? 0)
  const size = reachMs > narrowReachMs ? 6 : 4
  const head = part.rule.lock ? 2 + size : 1
  return forms.find(
    (one) =>
      !part.isExact === (one.size === 0) &&
      (!part.isExact || (one.head === head && one.size === size)),
  ) as Form
}

/** What fits the longest window fits all. */
export function mostTimes(part: Part): number {
  return part.windows.find((one) => one.windowMs === part.longestMs)?.limit ?? 0
}

export function emptyValue(part: Part): Buffer {
  const { code, head } = formOf(part)
  const value = Buffer.alloc(head)
  value[0] = code
  return value
}

/** Reads a value of any form into the first place of a store of this part. Throws `LimiterUnavailable` if it is not one of ours. */
export function readValue(value: Buffer | null, part: Part, nowMs: number, store: CellStore): void {
  store.lengths[0] = 0
  store.counts[0] = 0
  if (value === null || value.length === 0) return
  const form = forms[value[0] as number]
  if (!form || value.length < form.head)
    throw new LimiterUnavailable('a value in Redis is not one of the limiter')
  if (form.size > 0) readTimes(value, form, part, nowMs, store)
  else readCells(value, nowMs, store)
}

function readTimes(value: Buffer, form: Form, part: Part, nowMs: number, store: CellStore): void {
  const { head, size } = form
  let cell = 0
  const lockedTimes = head > 1 ? (value[head - 1] as number) : 0
  if (lockedTimes > 0) {
    const endsAt = timeAt(value, 1, size, nowMs)
    store.counts[0] = lockedTimes - 1
    put(store, cell++, endsAt - part.longestMs, lockMark)
  }
  const times = Math.floor((value.length - head) / size)
  const skipped = Math.max(0, times - (store.stride - cell))
  for (let index = skipped; index < times; index++) {
    const at = timeAt(value, head + index * size, size, nowMs)
    // Newer times push old ones out, so some may have left every window long ago.
    if (nowMs - at < part.longestMs) put(store, cell++, at, 1)
  }
  store.lengths[0] = cell
}

function readCells(value: Buffer, nowMs: number, store: CellStore): void {
  const cells = Math.floor((value.length - 5) / 10)
  const skipped = Math.max(0, cells - store.stride)
  let before = value.readUInt32BE(1 + skipped * 10)
  store.counts[0] = before
  for (let cell = skipped; cell < cells; cell++) {
    const total = value.readUInt32BE(11 + cell * 10)
    put(store, cell - skipped, timeAt(value, 5 + cell * 10, 6, nowMs), (total - before) >>> 0)
    before = total
  }
  store.lengths[0] = cells - skipped
}

function put(store: CellStore, cell: number, at: number, uses: number): void {
  store.times[cell] = store.wide ? at : at % 4_294_967_296
  store.counts[cell + 1] = (store.counts[cell] as number) + uses
  store.newestAt[0] = at
}

/** In full: the one nearest to now. */
function timeAt(value: Buffer, offset: number, size: number, nowMs: number): number {
  if (size === 6) return value.readUIntBE(offset, 6)
  return nowMs - ((nowMs - value.readUInt32BE(offset)) | 0)
}

/** The value of another form as one of this part's; what it can't hold is beyond any of its limits. */
export function reshapedValue(value: Buffer, part: Part, nowMs: number): Buffer {
  const wide = createCellStore({ ...part, wide: true, maxCells: 255 }, 1)
  readValue(value, part, nowMs, wide)
  const store = createCellStore(part, 1)
  copyCells(wide, 0, store, 0, nowMs)
  return writeValue(store, part, nowMs)
}

function writeValue(store: CellStore, part: Part, nowMs: number): Buffer {
  const { size } = formOf(part)
  const chunks = [emptyValue(part)]
  const [head] = chunks as [Buffer]
  const full = (cell: number) =>
    store.wide
      ? (store.times[cell] as number)
      : nowMs - ((nowMs - (store.times[cell] as number)) | 0)
  if (size === 0) head.writeUInt32BE(store.counts[0] as number, 1)
  for (let cell = 0; cell < (store.lengths[0] as number); cell++) {
    const before = store.counts[cell] as number
    const uses = ((store.counts[cell + 1] as number) - before) & (store.wide ? -1 : 255)
    const chunk = Buffer.alloc(size || 10)
    if (size === 0) {
      chunk.writeUIntBE(full(cell), 0, 6)
      chunk.writeUInt32BE(store.counts[cell + 1] as number, 6)
      chunks.push(chunk)
    } else if (part.rule.lock && uses === lockMark) {
      head.writeUIntBE((full(cell) + part.longestMs) % 256 ** size, 1, size)
      head[head.length - 1] = Math.min(255, before + 1)
    } else if (nowMs - full(cell) < part.longestMs) {
      chunk.writeUIntBE(full(cell) % 256 ** size, 0, size)
      for (let use = 0; use < Math.min(uses, mostTimes(part)); use++) chunks.push(chunk)
    }
  }
  return Buffer.concat(chunks)
}
