/** The page of the passkey: the browser's own functions read and write the JSON of @simplewebauthn/server. */
const [field, enrol, signIn, message] = ['postern-code', '#enrol', '#sign-in', '#message'].map(
  (name) => document.querySelector(name),
)

// #region page
/** The pass becomes the right to create one passkey. The dialog of the browser needs a press of the person. */
field.addEventListener('passed', async ({ detail: { pass, channel, to } }) => {
  const options = await post('/enrol/options', { pass, channel, to })
  if (!options) return
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
  enrol.hidden = false
  enrol.onclick = () =>
    withDialog(async () => {
      const passkey = await navigator.credentials.create({ publicKey })
      enrol.hidden = true
      return post('/enrol', passkey.toJSON())
    })
})

signIn.onclick = () =>
  withDialog(async () => {
    const options = await post('/sign-in/options', {})
    if (!options) return
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
    const passkey = await navigator.credentials.get({ publicKey })
    return post('/sign-in', passkey.toJSON())
  })
// #endregion page

async function withDialog(work) {
  try {
    const answer = await work()
    if (answer) message.textContent = `Welcome, ${answer.to}!`
  } catch (error) {
    // A person who closes the dialog can press the button again.
    message.textContent = error.name === 'NotAllowedError' ? 'No passkey was used.' : String(error)
  }
}

/** The answer, or nothing after a refusal, which is shown. */
async function post(path, body) {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
  const read = await answer.json()
  if (!answer.ok) message.textContent = read.message
  return answer.ok ? read : undefined
}
