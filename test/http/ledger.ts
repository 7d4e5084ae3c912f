import { expect } from 'vitest'
import type { Postern, Reply } from '../tools/postern.ts'

/**
 * Everything that a request can use up: the notices in PostgreSQL, and every count, try and code in Redis, byte for
 * byte. Data of the queue, records, and notes of workers are written later, so they are left out.
 */
async function ledgerOf({ redis, database }: Postern): Promise<string> {
  const names = await redis.client.keys('*')
  const kept = names
    .filter((name) => !name.startsWith('{') && !/sandbox|:workers$/.test(name))
    .sort()
  const values = await Promise.all(kept.map((name) => redis.client.dumpBuffer(name)))
  const { rows } = await database.pool.query(
    'SELECT (SELECT count(*) FROM notice) AS notices, (SELECT count(*) FROM idempotency_key) AS keys',
  )
  return JSON.stringify([rows, kept, values.map((value) => value?.toString('base64'))])
}

/** Asserts the refusal of a bad request: a problem document of the catalogue, and nothing is used up. */
export async function expectRefused(
  postern: Postern,
  expected: { status: number; code: string },
  request: () => Promise<Reply>,
): Promise<Reply> {
  const before = await ledgerOf(postern)
  const reply = await request()
  expect({ status: reply.status, code: reply.body.code }).toEqual(expected)
  expect(reply.headers.get('content-type')).toBe('application/problem+json')
  expect(reply.body).toMatchObject({
    type: `urn:postern:problem:${expected.code}`,
    title: expect.any(String),
    status: expected.status,
    detail: expect.any(String),
  })
  expect(await ledgerOf(postern)).toBe(before)
  return reply
}

export const badRequest = { status: 400, code: 'invalid_request' }
export const badRecipient = { status: 422, code: 'invalid_recipient' }
