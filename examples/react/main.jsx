// #region sign-up
import { StrictMode, useState } from 'react'
import { createRoot } from 'react-dom/client'

const { VITE_POSTERN_URL, VITE_PUBLISHABLE_KEY } = import.meta.env

function SignUp() {
  const [name, setName] = useState('')
  const [said, setSaid] = useState('')

  async function submit(event) {
    event.preventDefault()
    // The field has put the pass, and whose it is, into the form.
    const body = new URLSearchParams(new FormData(event.currentTarget))
    const answer = await fetch('/signup', { method: 'POST', body })
    setSaid(answer.ok ? `Welcome, ${name}!` : 'Please confirm your number or address first.')
  }

  return (
    <form onSubmit={submit}>
      <h1>Sign up</h1>
      <label>
        Name <input name="name" value={name} onChange={(event) => setName(event.target.value)} />
      </label>
      {/* React keeps `key` for itself. An event is a property of its name after `on`. */}
      <postern-code
        publishable-key={VITE_PUBLISHABLE_KEY}
        src={VITE_POSTERN_URL}
        scene="signup"
        channels="sms,email"
        required
        onpassed={() => setSaid('Confirmed. One more click.')}
      />
      <button type="submit">Sign up</button>
      <p role="status">{said}</p>
    </form>
  )
}
// #endregion sign-up

function Page() {
  const [isOpen, setIsOpen] = useState(true)
  return (
    <>
      <button type="button" onClick={() => setIsOpen(!isOpen)}>
        {isOpen ? 'Close' : 'Open'}
      </button>
      {isOpen && <SignUp />}
    </>
  )
}

createRoot(document.getElementById('root')).render(
  <StrictMode>
    <Page />
  </StrictMode>,
)
