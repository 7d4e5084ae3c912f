/**
 * The request that a plugin's router is answering. The calls in process find it here. So its log line names app, key,
 * notice and refusal, and its span is the parent of their spans. The plugin needs no code for this.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Request } from 'express'
import { inSpan } from '../base/traces.ts'
import { addressOf } from './address.ts'
import { type Call, refusalFacts, startRequestSpan } from './request-record.ts'

interface PluginRequest {
  readonly route: string
  readonly request: Request
  readonly call: Call
}

const current = new AsyncLocalStorage<PluginRequest>()

export const whileAnswering = <Result>(plugin: PluginRequest, work: () => Result): Result =>
  current.run(plugin, work)

/** For handlers after the plugin: their work is no part of its request. */
export const afterPlugin = (next: () => void): void => current.exit(next)

/**
 * The plugin has found out whose request it is. `isTrusted`: a secret key was given, so the caller's trace may be
 * continued. The first call counts.
 */
export function admitPluginRequest(
  { app, keyId }: { app: string; keyId?: string | undefined },
  isTrusted: boolean,
): void {
  const { route, request, call } = current.getStore() ?? {}
  if (!call || call.isOver || call.span) return
  Object.assign(call.facts, keyId === undefined ? { app } : { app, keyId })
  call.span = startRequestSpan(route as string, request as Request, call.startMs, isTrusted)
}

/** True if the plugin knows whose request it is. */
export const isAdmitted = () => current.getStore()?.call.facts.app !== undefined

/** The caller of the plugin, and the time that its request waited at its socket. */
export function pluginCaller(): { caller: string; waitedMs: number } {
  const { request, call } = current.getStore() ?? {}
  return { caller: request ? addressOf(request) : '', waitedMs: call?.waitedMs ?? 0 }
}

/** Runs a call in process. */
export const inPluginRequest = <Result>(work: () => Result): Result =>
  inSpan(current.getStore()?.call.span, work)

/** A call in process failed. If the plugin answers with 5xx for it, the answer is counted and logged by this cause. */
export function notePluginFailure(error: unknown): void {
  const { call } = current.getStore() ?? {}
  if (call) call.failure = error
}

/** Outcomes of reads are no facts of the request. */
const reads = ['found', 'not_found']
const successes = ['accepted', 'passed', 'canceled']

/** Notes the outcome of a send, a check or an end of a code. */
export function notePluginOutcome<Made extends { outcome: string }>(made: Made): Made {
  const { outcome, ...members } = made as { outcome: string; id?: string }
  const { call } = current.getStore() ?? {}
  if (!call || reads.includes(outcome)) return made
  if (!successes.includes(outcome)) Object.assign(call.facts, refusalFacts(outcome, members))
  else if (members.id) call.facts.noticeId = members.id
  return made
}
