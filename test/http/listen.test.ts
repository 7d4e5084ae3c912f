import type { Server } from 'node:http'
import { expect, test } from 'vitest'
import { listen } from '../../src/http/listen.ts'

/** A machine may have no IPv6, so nothing listens here. */
const server = {
  once: () => server,
  listen: (_port: number, _host: string, done: () => void) => done(),
  address: () => ({ port: 7615 }),
} as unknown as Server

test.each([
  ['0.0.0.0', 'http://localhost:7615'],
  ['::', 'http://localhost:7615'],
  ['::1', 'http://[::1]:7615'],
  ['127.0.0.1', 'http://127.0.0.1:7615'],
  ['codes.example', 'http://codes.example:7615'],
])('HOST=%s → %s', async (host, url) => {
  expect(await listen(server, 0, host)).toBe(url)
})
