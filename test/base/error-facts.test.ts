/** The facts of an error in the log: enough to find its cause, and none of its values. */
import { describe, expect, test } from 'vitest'
import { Unavailable } from '../../src/base/unavailable.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { linesOf } from '../tools/log-lines.ts'

const { url } = await testDatabase()
const database = databaseAt(url, 1)
const number = '+8613812345678'

/** The line in which this error is made. */
const lineOf = (error: unknown) => linesOf((log) => log.requestFailed('request', error))

const failing = (work: () => Promise<unknown>) =>
  work().then(
    () => expect.unreachable('it did not fail'),
    (error: unknown) => error,
  )

describe('an error of the database', () => {
  test.each([
    [
      'Prisma, an id that is none',
      'P2007',
      () => database.read((prisma) => prisma.notice.findFirst({ where: { id: number } })),
    ],
    [
      'Prisma, raw',
      'P2010',
      () => database.read((prisma) => prisma.$queryRawUnsafe('SELECT $1::text::uuid', number)),
    ],
    ['pg, an id that is none', '22P02', () => database.query('x1', 'SELECT $1::uuid', [number])],
    [
      'pg, a time that is none',
      '22009',
      () => database.query('x2', 'SELECT $1::timestamptz', [number]),
    ],
    [
      'pg, of several lines',
      '22P02',
      () => database.query('x3', 'SELECT $1::uuid', [`a\n    at ${number}:1:1`]),
    ],
  ])('%s: its code and where it was thrown, not the value', async (_, code, work) => {
    const line = await lineOf(await failing(work))
    expect(line).not.toContain(number.slice(1))
    const facts = JSON.parse(line)
    expect(facts).toMatchObject({ requestId: 'request', code })
    expect(facts.stack).toMatch(/^ {4}at /)
  })

  test('arguments that Prisma does not understand are not printed', async () => {
    const where = { recipient: number, nonsense: number }
    const line = await lineOf(
      await failing(() => database.read((prisma) => prisma.notice.findFirst({ where } as object))),
    )
    expect(line).toContain('PrismaClientValidationError')
    expect(line).not.toContain(number.slice(1))
  })

  test('neither is one below another error', async () => {
    const cause = await failing(() => database.query('x4', 'SELECT $1::uuid', [number]))
    const line = await lineOf(new Unavailable('postgresql', cause))
    expect(line).not.toContain(number.slice(1))
    expect(JSON.parse(line).code).toBe('22P02')
  })

  test('an error without values keeps its message', async () => {
    const line = await lineOf(
      await failing(() => database.query('x5', 'SELECT * FROM nowhere', [])),
    )
    expect(JSON.parse(line)).toMatchObject({
      code: '42P01',
      message: 'relation "nowhere" does not exist',
    })
  })

  test('JSON that cannot be read is not quoted', async () => {
    const line = await lineOf(await failing(async () => JSON.parse(number)))
    expect(line).not.toContain(number.slice(1))
    expect(JSON.parse(line)).toMatchObject({ error: 'SyntaxError' })
  })
})
