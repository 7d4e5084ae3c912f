/** Loaded before a process' code: shifts its clock by CLOCK_SHIFT_MS, like the clock of a badly kept machine. */
const shiftMs = Number(process.env.CLOCK_SHIFT_MS)
const SystemDate = Date

globalThis.Date = class extends SystemDate {
  constructor(...args: unknown[]) {
    if (args.length === 0) super(SystemDate.now() + shiftMs)
    else super(...(args as [number]))
  }

  static override now(): number {
    return SystemDate.now() + shiftMs
  }
} as DateConstructor

export {}
