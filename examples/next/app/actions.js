'use server'
import { redirect } from 'next/navigation'

/** A server action: it runs on the server, where the secret key is. */
export async function signUp(form) {
  const { POSTERN_URL, SECRET_KEY } = process.env
  const answer = await fetch(`${POSTERN_URL}/v1/passes/verify`, {
    method: 'POST',
    headers: { authorization: `Bearer ${SECRET_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      pass: form.get('postern-pass'),
      channel: form.get('postern-channel'),
      to: form.get('postern-to'),
    }),
  })
  const { valid, scene } = await answer.json()
  const isTheirs = valid === true && scene === 'signup'
  const said = isTheirs ? 'Welcome!' : 'Please confirm your number or address first.'
  redirect(`/?said=${encodeURIComponent(said)}`)
}
