/** The demo as a process, and its page in a real browser. */
import { expect, test } from 'vitest'
import { childrenOf } from '../support/own-servers.ts'
import { eventually } from '../support/wait.ts'
import { isRunning, startDemo } from './start-demo.ts'

test('the worker delivers for the demo, and is gone with it when it is killed', async () => {
  const demo = await startDemo()
  const [worker = 0, ...others] = childrenOf(demo.pid)
  expect(others).toEqual([])
  expect(isRunning(worker)).toBe(true)
  expect((await demo.post('/v1/captchas', { channel: 'sms', to: '+8613800138000' })).status).toBe(
    202,
  )
  expect(await demo.codeFor('+8613800138000')).toMatch(/^\d{4}$/)
  await demo.kill()
  await eventually(() => !isRunning(worker))
})
