import type { Postern } from './postern.ts'

/** The pass of a page after the right code: sent to this number, read in the sandbox, checked. */
export async function passFor(
  { post, codeFor }: Postern,
  to: string,
  scene: string,
): Promise<string> {
  const sent = await post('/v1/captchas', { channel: 'sms', to, scene })
  const code = await codeFor(sent.body.id)
  const checked = await post('/v1/captchas/check', { channel: 'sms', to, scene, code })
  return checked.body.pass
}
