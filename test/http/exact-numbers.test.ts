/** JSON can carry integers that JavaScript does not keep apart. */
import { describe, expect, test } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'

const postern = await startPostern({
  policyFile: {
    policies: { ...noLimits, export: [{ name: 'account', key: '{account}', sliding: '1 per 1h' }] },
  },
})

const post = async (path: string, body: string) => {
  const answer = await fetch(`${postern.url}${path}`, {
    method: 'POST',
    body,
    headers: { authorization: `Bearer ${postern.key}`, 'content-type': 'application/json' },
  })
  return {
    status: answer.status,
    body: (await answer.json()) as { code: string; errors?: object[] },
  }
}

describe.each([
  [
    'fields of a limit',
    (value: string) => post('/v1/limits/export/acquire', `{"fields":{"account":${value}}}`),
    'fields.account',
    200,
  ],
  [
    'params of a notice',
    (value: string) =>
      post(
        '/v1/notices',
        `{"channel":"sms","to":"+8613800138000","template":"welcome","params":{"name":${value}}}`,
      ),
    'params.name',
    202,
  ],
])('%s', (_, send, path, good) => {
  test.each([
    '9007199254740992',
    '9007199254740993',
    '-9007199254740993',
    '12345678901234567890',
    '1e300',
  ])('%s → 400, write it as text', async (value) => {
    const { status, body } = await send(value)
    expect([status, body.code]).toEqual([400, 'invalid_request'])
    expect(body.errors?.[0]).toEqual({ path, message: expect.stringContaining('write it as text') })
  })

  test.each(['9007199254740991', '"9007199254740993"', '"9007199254740992"', '1.5'])(
    '%s → accepted, each as one separate value',
    async (value) => expect((await send(value)).status).toBe(good),
  )
})
