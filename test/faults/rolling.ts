/** API processes are replaced one after the other, under callers that keep their connections. */
import { Agent, type ClientRequest, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { type Fleet, fleetKey, freshPhone, startFleet } from '../tools/fleet.ts'
import {
  areReady,
  openCaddy,
  openHaproxy,
  openNginx,
  type Place,
  twoPlaces,
  type Way,
} from '../tools/proxies.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import type { Fault, Lab } from './fault.ts'

const callers = 8
/** The pause between two sends of a caller. All callers together make 80 sends a second. */
const pauseMs = 100
const maxTries = 10

/** Results of the sends of all callers. */
interface Tally {
  accepted: number
  /** Every other outcome: a status, or the error of a broken connection. */
  others: { to: string; outcome: string }[]
}

/** Sends one after the other on a kept connection. If an address refuses to connect, it uses the next one. */
async function call(addresses: readonly string[], tally: Tally, isOver: () => boolean) {
  const isTls = addresses[0]?.startsWith('https:')
  const agent = isTls
    ? new TlsAgent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
    : new Agent({ keepAlive: true, maxSockets: 1 })
  releaseLater(() => agent.destroy())
  let at = 0
  while (!isOver()) {
    const to = freshPhone()
    let outcome = ''
    for (let tries = 0; tries < maxTries; tries++) {
      outcome = await sendOnce(`${addresses[at % addresses.length]}/v1/captchas`, agent, to)
      if (outcome === 'ECONNREFUSED') at += 1
      // A 503 of a busy machine. If it had kept the use of this number, the next try would be refused.
      else if (outcome !== 'unavailable') break
    }
    if (outcome === '202') tally.accepted += 1
    else tally.others.push({ to, outcome })
    await sleep(pauseMs)
  }
  agent.destroy()
}

function sendOnce(url: string, agent: Agent, to: string): Promise<string> {
  const body = JSON.stringify({ channel: 'sms', to })
  const headers = {
    authorization: `Bearer ${fleetKey}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  }
  return new Promise((resolve) => {
    const send = url.startsWith('https:') ? tlsRequest : request
    const outgoing: ClientRequest = send(url, { agent, method: 'POST', headers })
    outgoing.once('error', ({ code, message }: NodeJS.ErrnoException) => resolve(code ?? message))
    outgoing.once('response', (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.once('error', ({ message }) => resolve(message))
      response.once('end', () => {
        const isOurs = response.statusCode === 503 && text.includes('"unavailable"')
        resolve(isOurs ? 'unavailable' : String(response.statusCode))
      })
    })
    outgoing.end(body)
  })
}

/** Replaces two processes in turn, each by one at the same address, and counts the callers' results. */
async function roll(
  lab: Lab,
  restarts: number,
  openWay: (places: readonly [Place, Place]) => Promise<Way>,
): Promise<void> {
  const fleet = await startFleet({ apis: 0, workers: 0 })
  const places = await twoPlaces()
  const way = await openWay(places)
  const startAt = (place: number) => fleet.startApi({ env: { ...way.env, ...places[place] } })
  const running = await Promise.all(places.map((_, place) => startAt(place)))
  await eventually(way.isWhole, { everyMs: 100 })

  const tally: Tally = { accepted: 0, others: [] }
  let isOver = false
  const calling = Promise.all(
    Array.from({ length: callers }, (_, caller) => {
      const first = caller % way.addresses.length
      const turned = [...way.addresses.slice(first), ...way.addresses.slice(0, first)]
      return call(turned, tally, () => isOver)
    }),
  )
  try {
    for (let count = 0; count < restarts; count++) {
      const place = count % running.length
      await sleep(lab.between(300, 600))
      expect(await running[place]?.terminate()).toBe(0)
      running[place] = await startAt(place)
      await eventually(way.isWhole, { everyMs: 100 })
    }
  } finally {
    isOver = true
    await calling
  }
  expect(tally.others, way.log()).toEqual([])
  expect(tally.accepted).toBeGreaterThan(restarts * 10)
  await expectNothingLost(fleet, tally)
}

/** No send counts for a caller who got no 202. */
async function expectNothingLost(fleet: Fleet, { accepted }: Tally): Promise<void> {
  // A row whose caller got 503 before its commit is closed again.
  const counted =
    "SELECT count(*)::int AS count FROM notice WHERE error IS DISTINCT FROM 'abandoned'"
  const [rows] = await fleet.query<{ count: number }>(counted)
  expect(rows?.count).toBe(accepted)
}

const i34: Fault = {
  id: 'I34',
  breaks: 'API processes replaced in turn, under callers that keep their connections',
  holds: 'every send is accepted; no connection is reset and no quota lost',
  proves: 'I13, I34',
  async prove(lab) {
    await roll(lab, lab.length(2, 10), async (places) => ({
      addresses: places.map(({ HOST, PORT }) => `http://${HOST}:${PORT}`),
      env: {},
      isWhole: () => areReady(places),
      log: () => '',
      accessLog: () => '',
    }))
    return undefined
  },
}

const f39: Fault = {
  id: 'F39',
  breaks: 'the same behind nginx, HAProxy and Caddy, each as in deploy/',
  holds: 'every send is accepted, none is a 502',
  proves: 'I34',
  async prove(lab) {
    const restarts = lab.length(1, 10)
    await Promise.all([roll(lab, restarts, openNginx), roll(lab, restarts, openHaproxy)])
    await roll(lab, restarts, openCaddy)
    return undefined
  },
}

export const rollingFaults: readonly Fault[] = [i34, f39]
