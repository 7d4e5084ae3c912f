/** The form of a service for the harness. An adapter makes it: docs/benchmark.md. */
import type { BenchProcess } from '../harness/bench.ts'

export interface World {
  readonly redis: { readonly url: string }
  readonly postgres: { readonly url: string }
  /** The service posts each message here, as JSON with `to` and `text`. Any 2xx accepts it. */
  readonly providerUrl: string
  /** For files of this run. */
  readonly folder: string
  /** Starts a Node program. It is ready with its first line, and listens at PORT. */
  start(
    file: string,
    options?: { policyFile?: object; env?: Record<string, string>; cwd?: string },
  ): Promise<BenchProcess>
}

export interface Adapter {
  readonly name: string
  /** Countries that it serves by SMS, if not all. People of others use mail. */
  readonly countries?: readonly string[] | undefined
  /** Starts the processes of the service. After a kill, once more over the same servers. */
  start(world: World): Promise<Service>
}

export interface Service {
  readonly processes: readonly BenchProcess[]
  send(press: Press): Promise<Sent>
  check(typed: Typed): Promise<Checked>
  /** True if the service has nothing left to do for earlier requests. Without it, an answer means that. */
  isQuiet?(): Promise<boolean>
  /** The metrics of each process, as Prometheus reads them, and the service's own alerts. */
  readonly watch?: { readonly metrics: () => Promise<readonly string[]>; readonly rules: string }
  close(): Promise<void>
}

/** A person presses "send me a code". */
export interface Press {
  readonly channel: 'sms' | 'email'
  readonly to: string
  readonly ip: string
  /** The `known` that an earlier right code of this person returned. */
  readonly known?: string | undefined
}

export interface Typed extends Press {
  readonly code: string
}

/** The same call again, with the challenge solved. */
export interface Challenged<Result> {
  readonly is: 'challenged'
  solve(): Promise<Result>
}

export type Sent =
  | { readonly is: 'accepted' }
  | { readonly is: 'refused'; readonly waitMs?: number | undefined }
  | Challenged<Sent>

export type Checked =
  | { readonly is: 'passed'; readonly known?: string | undefined }
  /** The only answer for a wrong code that was compared. */
  | { readonly is: 'wrong' }
  | { readonly is: 'gone' }
  | { readonly is: 'refused' }
  | Challenged<Checked>

/** The answer after a challenge, if there was one. */
export const solvedAnswer = async <Result extends Sent | Checked>(
  first: Result,
): Promise<Result> => (first.is === 'challenged' ? (first as Challenged<Result>).solve() : first)
