/**
 * The subjects of one part in process: a place in the cell arrays for each, at most `maxSubjects`.
 * Place 0 is never taken and always empty, so that a look at an unknown subject needs no special case.
 * When all places are taken, a hand goes round the subjects in the order of their arrival: the first
 * that was not touched since the hand came by, or whose cells have all left, gives up its place.
 */
import { type CellStore, copyCells, createCellStore, growCellStore, resetsInMs } from './cells.ts'
import type { Part } from './plan.ts'

export interface SubjectTable {
  readonly cells: CellStore
  /** 0 if the subject is not known. */
  find(subject: string): number
  /** Marks a place as used since the hand came by; returns it. */
  touch(place: number): number
  /** The subject's place, new or not; marks it as touched. */
  claim(subject: string, nowMs: number): number
  forget(subject: string): void
  /** The newest cells of every subject, in the shape that the part has after a reload. */
  reshaped(part: Part, nowMs: number): SubjectTable
}

const firstCapacity = 64

export function createSubjectTable(part: Part, maxSubjects: number): SubjectTable {
  const places = new Map<string, number>()
  const free: number[] = []
  let capacity = Math.min(firstCapacity, maxSubjects + 1)
  const cells = createCellStore(part, capacity)
  let nextPlace = 1
  /** Begun when it is needed: an iterator keeps every smaller table alive that the map has grown out of. */
  let hand: MapIterator<[string, number]> | undefined

  function empty(place: number): void {
    cells.lengths[place * cells.recordBytes] = 0
  }

  function evict(nowMs: number): number {
    for (;;) {
      const step = hand?.next()
      if (!step || step.done) {
        hand = places.entries()
        continue
      }
      const [subject, place] = step.value
      if (
        cells.marks[place * cells.recordBytes] === 1 &&
        resetsInMs(cells, place, part.longestMs, nowMs) > 0
      ) {
        cells.marks[place * cells.recordBytes] = 0
        continue
      }
      places.delete(subject)
      empty(place)
      return place
    }
  }

  function newPlace(nowMs: number): number {
    const freed = free.pop()
    if (freed !== undefined) return freed
    if (nextPlace > maxSubjects) return evict(nowMs)
    if (nextPlace === capacity) {
      capacity = Math.min(capacity * 2, maxSubjects + 1)
      growCellStore(cells, capacity)
    }
    return nextPlace++
  }

  return {
    cells,
    find: (subject) => places.get(subject) ?? 0,
    touch(place) {
      cells.marks[place * cells.recordBytes] = 1
      return place
    },
    claim(subject, nowMs) {
      let place = places.get(subject)
      if (place === undefined) {
        place = newPlace(nowMs)
        places.set(subject, place)
      }
      cells.marks[place * cells.recordBytes] = 1
      return place
    },
    forget(subject) {
      const place = places.get(subject)
      if (place === undefined) return
      places.delete(subject)
      empty(place)
      free.push(place)
    },
    reshaped(next, nowMs) {
      const table = createSubjectTable(next, maxSubjects)
      for (const [subject, place] of places) {
        copyCells(cells, place, table.cells, table.claim(subject, nowMs), nowMs)
      }
      return table
    },
  }
}
