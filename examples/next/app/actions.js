'use server'
import { redirect } from 'next/navigation'

/** Stands for the database. Postern gives one text for every spelling of a recipient, so this has each person once. */
const accounts = new Set()

/** A server action: it runs on the server, where the secret key is. */
export async function signUp(form) {
  const said = await recipientOf(form).then(
    (recipient) => {
      if (!recipient) return 'Please confirm your number or address first.'
      accounts.add(recipient)
      return 'Welcome!'
    },
    (error) => {
      console.error(error)
      return 'We cannot check that now. Please try again in a minute.'
    },
  )
  redirect(`/?said=${encodeURIComponent(said)}`)
}

/** The recipient that the pass proves; undefined without a valid pass for this form. */
async function recipientOf(form) {
  const { POSTERN_URL, SECRET_KEY } = process.env
  const answer = await fetch(`${POSTERN_URL}/v1/passes/verify`, {
    method: 'POST',
    headers: { authorization: `Bearer ${SECRET_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      pass: form.get('postern-pass') ?? '',
      channel: form.get('postern-channel'),
      to: form.get('postern-to'),
    }),
    signal: AbortSignal.timeout(5_000),
  })
  // 400 and 422: the form has no pass or no address. Other errors are not the visitor's fault.
  if (!answer.ok && answer.status !== 400 && answer.status !== 422)
    throw new Error(`Postern answers ${answer.status}`)
  const { valid, scene, to } = await answer.json()
  return valid === true && scene === 'signup' ? to : undefined
}
