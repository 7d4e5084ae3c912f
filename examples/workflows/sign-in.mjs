/**
 * A sign-in at a terminal, with several ways to the person. See docs/guides/workflows.md.
 *
 *   SECRET_KEY=psk_… node sign-in.mjs +8613800138000 ada@example.com
 *
 * Type a code, `next` for the next way, or an empty line to see whether another way began.
 */
import { createInterface } from 'node:readline'

const { POSTERN_URL = 'http://localhost:3000', SECRET_KEY } = process.env
const [to, email] = process.argv.slice(2)

// #region call
async function call(path, body) {
  const answer = await fetch(`${POSTERN_URL}/v1/captchas${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${SECRET_KEY}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  })
  const result = await answer.json()
  const { detail, errors = [] } = result
  if (!answer.ok) throw new Error([detail, ...errors.map(({ message }) => message)].join(' '))
  return result
}
// #endregion call

// #region send
const { id, way } = await call('', { workflow: 'default', to, email })
// #endregion send
show(way)

for await (const typed of createInterface(process.stdin)) {
  try {
    if (typed === '') {
      // #region way
      const latest = await call(`/${id}/way`, {})
      show(latest.way)
      // #endregion way
    } else if (typed === 'next') {
      // #region next
      const next = await call(`/${id}/next`, {})
      show(next.way)
      // #endregion next
    } else {
      // #region check
      await call('/check', { id, code: typed })
      const { ways } = await call(`/${id}`)
      // #endregion check
      for (const { channel, state, error, passed } of ways) {
        console.log([channel, state, error, passed && 'passed'].filter(Boolean).join(' '))
      }
      process.exit()
    }
  } catch (error) {
    console.log(error.message)
  }
}

function show({ channel, index, of, next }) {
  console.log(`way ${index} of ${of}: ${channel}${next ? `, next: ${next}` : ''}`)
}
