import { expect, it } from 'vitest'
import { Unavailable } from '../../src/base/unavailable.ts'
import { createSiteverify } from '../../src/captcha/siteverify.ts'
import { brokenHttp, http, startMisbehavingServer } from '../tools/misbehaving-server.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

it.each([
  ...brokenHttp,
  ['no byte is read', 'never reads', http] as const,
  ['less than announced', 'lies about the length', http] as const,
  ['more than announced', 'sends more than it announces', http] as const,
])(
  'a vendor of challenges: %s → unavailable, so no token passes',
  async (_, misbehaviour, protocol) => {
    const server = await startMisbehavingServer(protocol, misbehaviour)
    const url = `http://127.0.0.1:${server.port}/siteverify`
    const kind = createSiteverify({ kind: 'turnstile', siteKey: 'site', secret: 'secret', url })
    releaseLater(() => kind.close())
    const owner = { app: 'shop', keyId: 'key', origins: [] }
    await expect(kind.prove(owner, 'a-token')).rejects.toBeInstanceOf(Unavailable)
    if (misbehaviour !== 'never reads') await eventually(() => server.connections.open === 0)
    expect(server.bytesSent()).toBeLessThan(16_000_000)
  },
)
