/** A call of a hook gives way to requests with a key, unless its signature is right. */

import { createServer, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import express from 'express'
import { expect, test } from 'vitest'
import { hooks } from '../../src/compat/hooks/index.ts'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'
import type { PosternCalls } from '../../src/http/in-process.ts'
import { listen } from '../tools/listen.ts'

const [secret, other] = ['a', 'b'].map(
  (letter) => `whsec_${Buffer.alloc(24, letter).toString('base64')}`,
) as [string, string]

test('its bytes are checked before it would wait: right → it does not wait; wrong → it does', async () => {
  const waits: boolean[] = []
  const postern = {
    async readBody(request: IncomingMessage, _: number, isGenuine: (bytes: Buffer) => boolean) {
      const bytes = await buffer(request)
      waits.push(!isGenuine(bytes))
      return bytes
    },
    sendCaptcha: async () => ({ outcome: 'accepted' }),
  } as unknown as PosternCalls
  const settings = hooks.settings.parse({
    auth: { kind: 'supabase', secret: `v1,${secret}`, app: 'web' },
  })
  const router = await hooks.create(settings).router?.(postern)
  const url = await listen(createServer(express().use(router as express.Router)))
  const body = { user: { phone: '8613800138000' }, sms: { otp: '123456', phone: '8613800138000' } }
  for (const by of [secret, other]) {
    await fetch(`${url}/v1/hooks/auth`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...signWebhook(by, 'msg_1', Date.now(), JSON.stringify(body)),
      },
      body: JSON.stringify(body),
    })
  }
  expect(waits).toEqual([false, true])
})
