import { signUp } from './actions.js'
import CodeField from './code-field.jsx'

// The addresses and keys are read when the page is requested, not when it is built.
export const dynamic = 'force-dynamic'

// #region page
export default async function Page({ searchParams }) {
  const { said } = await searchParams
  const { POSTERN_URL, PUBLISHABLE_KEY } = process.env
  return (
    <main>
      <h1>Sign up</h1>
      <form action={signUp}>
        <label>
          Name <input name="name" />
        </label>
        <CodeField src={POSTERN_URL} publishableKey={PUBLISHABLE_KEY} />
        <button type="submit">Sign up</button>
      </form>
      <p role="status">{said}</p>
    </main>
  )
}
// #endregion page
