/** A number that got messages by several channels: one story for each, and links between them. */
import { expect, test } from 'vitest'
import { noLimits } from '../tools/postern.ts'
import { openConsole } from './open-console.ts'

const sandbox = [{ use: ['sandbox'] }]
const { postern, createOperator, client } = await openConsole({
  policyFile: {
    policies: noLimits,
    routes: { sms: sandbox, email: sandbox, voice: sandbox, telegram: sandbox },
  },
})
const send = (channel: string, to: string) =>
  postern.post('/v1/captchas', { channel, to }, { key: postern.key })
const anna = client()
await anna.signIn((await createOperator()).token)
const find = async (q: string) => (await anna.submit('/search', { q })).text
/** The links of the story to its channels, and the current one. */
const waysIn = (text: string) =>
  [...text.matchAll(/<a href="(\/story\/[^"]+)"( aria-current="true")?>([\w ]+)<\/a>/g)].map(
    ([, href = '', current, name]) => ({ href, name, isCurrent: current !== undefined }),
  )

test('a search by number → the story of the latest channel, with links to the others', async () => {
  const to = '+8613800310001'
  const ids: string[] = []
  for (const channel of ['sms', 'voice']) ids.push((await send(channel, to)).body.id)
  const text = await find(to)
  expect(text).toContain(`href="/notices/${ids[1]}"`)
  const ways = waysIn(text)
  expect(ways.map(({ name, isCurrent }) => [name, isCurrent])).toEqual([
    ['SMS', false],
    ['phone call', true],
  ])
  const other = await anna.get(ways[0]?.href.replaceAll('&#38;', '&') ?? '')
  expect(other.text).toContain(`href="/notices/${ids[0]}"`)
  expect(other.text).not.toContain(`href="/notices/${ids[1]}"`)
})

test('one channel, or an address of mail → no links; a landline that was called is found', async () => {
  await send('telegram', '+8613800310002')
  await send('email', 'ada@example.com')
  await send('voice', '+442071234567')
  for (const q of ['+8613800310002', 'ada@example.com', '+442071234567', '+8613800310003']) {
    const text = await find(q)
    expect(text).toContain('<h1>')
    expect(waysIn(text)).toEqual([])
  }
  expect(await find('+442071234567')).not.toContain('No code was requested')
})

test('an operator of another app → not the channels of this one', async () => {
  const to = '+8613800310004'
  await send('telegram', to)
  const bert = client()
  await bert.signIn((await createOperator({ app: 'other' })).token)
  const { text } = await bert.submit('/search', { q: to })
  expect(text).not.toContain('Telegram')
})
