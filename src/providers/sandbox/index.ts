import { setTimeout as sleep } from 'node:timers/promises'
import { channels } from '../../base/channel.ts'
import { newId } from '../../base/ids.ts'
import type { Message, Provider, SendResult, SentMessage } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { accepted } from '../send-result.ts'
import type { SandboxOutbox } from './outbox.ts'
import {
  type FaultRule,
  type ReceiptSettings,
  type SandboxSettings,
  sandboxSettings,
} from './settings.ts'

/**
 * A provider for tests: it delivers to a list in Redis, which `GET /sandbox/messages` shows. It supports every channel,
 * stores the texts as a person would see them, and can simulate every fault of a real provider.
 */
export const sandbox: ProviderKind<SandboxSettings> = {
  kind: 'sandbox',
  channels,
  settings: sandboxSettings,
  create: createSandbox,
}

/** The sandbox also needs an outbox: one list for all sandbox providers of the process. */
export interface SandboxDeps extends ProviderDeps {
  readonly outbox?: SandboxOutbox
}

function createSandbox(name: string, settings: SandboxSettings, deps: SandboxDeps): Provider {
  const { outbox, clock } = deps
  if (!outbox) throw new Error('A sandbox provider needs an outbox')
  const closing = new AbortController()
  const timers = new Set<NodeJS.Timeout>()

  const keep = async (message: Message): Promise<string | undefined> => {
    const { noticeId, channel, to, subject, text, html } = message
    const id = newId(clock())
    try {
      const sent = { provider: name, sentAt: new Date(clock()).toISOString() }
      await outbox.append({ id, noticeId, channel, to, subject, text, html, ...sent })
      return id
    } catch {
      return undefined
    }
  }

  /** If the outbox does not answer before the hand-over, the provider counts as switched off. */
  const isSwitchedOff = () => outbox.isOff(name).catch(() => true)

  function sendReceipts(messageId: string, noticeId: string, plan: ReceiptSettings): void {
    const { outcome, delay, copies } = plan
    for (let copy = 0; copy < copies; copy++) {
      const timer = setTimeout(() => {
        timers.delete(timer)
        deps.onReceipt?.(name, { messageId, noticeId, outcome, at: clock() }).catch(() => {})
      }, delay)
      timers.add(timer)
    }
  }

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    if (closing.signal.aborted) return { kind: 'unavailable', detail: 'closed' }
    if (signal.aborted) return { kind: 'unavailable', detail: 'aborted' }
    if (settings.switchable && (await isSwitchedOff())) {
      return { kind: 'unavailable', detail: 'switched off' }
    }
    const fault = findFault(settings.faults, message.to)
    /** False if the wait was aborted. */
    const wait = (ms: number) =>
      sleep(ms, true, { signal: AbortSignal.any([signal, closing.signal]) }).catch(() => false)
    if (fault?.delay && !(await wait(fault.delay))) {
      return { kind: 'unavailable', detail: 'aborted' }
    }
    switch (fault?.result) {
      case 'hang':
        await wait(deps.timeoutMs)
        return { kind: 'unavailable', detail: 'no answer in time' }
      case 'throttled':
        return { kind: 'throttled', retryAfterMs: fault.retryAfter, detail: 'sandbox fault' }
      case 'rejected':
      case 'invalid_recipient':
      case 'postponed':
      case 'unavailable':
        return { kind: fault.result, detail: 'sandbox fault' }
    }
    const messageId = await keep(message)
    if (messageId === undefined) return { kind: 'unknown', detail: 'no answer from the outbox' }
    const receipts = fault?.receipts ?? settings.receipts
    if (receipts) sendReceipts(messageId, message.noticeId, receipts)
    return fault?.result === 'lost_answer'
      ? { kind: 'unknown', detail: 'sandbox fault' }
      : accepted(messageId)
  }

  const query = async ({ noticeId }: SentMessage): Promise<SendResult> => {
    try {
      const item = await outbox.find(noticeId)
      return item ? accepted(item.id) : { kind: 'unavailable', detail: 'not in the outbox' }
    } catch {
      return { kind: 'unknown', detail: 'no answer from the outbox' }
    }
  }

  return {
    name,
    kind: sandbox.kind,
    channels: sandbox.channels,
    slots: deps.concurrency,
    send,
    ...(settings.query ? { query } : {}),
    async close() {
      closing.abort()
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
  }
}

/** The fault for this recipient: the fault of the first rule that fits. */
export function findFault(rules: readonly FaultRule[], to: string): FaultRule | undefined {
  return rules.find(
    (rule) =>
      (rule.to === undefined || rule.to.some((pattern) => fits(pattern, to))) &&
      (rule.share === 1 || Math.random() < rule.share),
  )
}

function fits(pattern: string, to: string): boolean {
  if (pattern.endsWith('*')) return to.startsWith(pattern.slice(0, -1))
  if (pattern.startsWith('*')) return to.endsWith(pattern.slice(1))
  return to === pattern
}
