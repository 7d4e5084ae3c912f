/**
 * A custom field with the client of the code field. See docs/code-field.md.
 *
 * Insert the address of your Postern and a publishable key. Serve the folder at an origin of that key.
 */
import {
  createPosternClient,
  solveChallenge,
} from 'https://codes.example/browser/postern-code.0.1.0.js'

// #region client
const client = createPosternClient({ src: 'https://codes.example', key: 'ppk_…' })

async function send(to, challenge) {
  const result = await client.send({ channel: 'sms', to, scene: 'login', challenge })
  if (result.ok)
    return `Sent. A new code can be had at ${new Date(result.answer.resendAt).toLocaleTimeString()}.`
  const { problem } = result
  if (problem.code === 'challenge_required' && problem.challenge.kind === 'altcha' && !challenge)
    return send(to, await solveChallenge(problem.challenge.challenge))
  if (problem.code === 'limited') return `Please wait ${Math.ceil(problem.retryAfterMs / 1_000)} s.`
  return problem.detail ?? 'We cannot be reached now.'
}

async function check(to, code) {
  const result = await client.check({ channel: 'sms', to, scene: 'login', code })
  // Your server asks Postern if the pass is valid.
  return result.ok
    ? logIn(result.answer.pass)
    : (result.problem.detail ?? 'We cannot be reached now.')
}
// #endregion client

const [askForm, checkForm, status] = ['#ask', '#check', '[role=status]'].map((name) =>
  document.querySelector(name),
)
const logIn = (pass) => `Confirmed by a pass of ${pass.length} characters.`

askForm.onsubmit = async (event) => {
  event.preventDefault()
  status.textContent = await send(askForm.to.value)
  checkForm.hidden = false
}
checkForm.onsubmit = async (event) => {
  event.preventDefault()
  status.textContent = await check(askForm.to.value, checkForm.code.value)
}
