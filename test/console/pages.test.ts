import { expect, test } from 'vitest'
import { openConsole } from './open-console.ts'

const { createOperator, client, postern } = await openConsole()

test('first look', async () => {
  const { token } = await createOperator()
  const one = client()
  const login = await one.get('/')
  console.log(login.status, login.text)
  const home = await one.signIn(token)
  console.log(home.status, home.text)
  await postern.post('/v1/captchas', { channel: 'sms', to: '+8613800138000' })
  await postern.post('/v1/captchas', { channel: 'sms', to: '+8613800138000' })
  const story = await one.submit('/search', { q: '+86 138 0013 8000' })
  console.log(story.status, story.text)
  for (const path of ['/notices', '/delivery', '/rules', '/keys', '/events', '/operations']) {
    const page = await one.get(path)
    expect(page.status, path + page.text).toBe(200)
  }
})
