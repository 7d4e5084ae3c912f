/**
 * Makes Postern the provider of Zitadel for SMS and mail, and prints the keys for the policy file. See docs/guides/zitadel.md.
 *
 *   ZITADEL_URL=https://auth.example ZITADEL_TOKEN=… POSTERN_URL=https://codes.example node set-up.mjs
 */
const { ZITADEL_URL, ZITADEL_TOKEN, POSTERN_URL } = process.env

async function call(path, body) {
  const headers = { authorization: `Bearer ${ZITADEL_TOKEN}`, 'content-type': 'application/json' }
  const request = { method: 'POST', headers, body: JSON.stringify(body) }
  const answer = await fetch(`${ZITADEL_URL}/admin/v1${path}`, request)
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return answer.json()
}

// #region set-up
for (const channel of ['sms', 'email']) {
  const endpoint = `${POSTERN_URL}/v1/hooks/zitadel-${channel}`
  const { id, signingKey } = await call(`/${channel}/http`, { endpoint, description: 'Postern' })
  await call(`/${channel}/${id}/_activate`, {})
  console.log(`ZITADEL_${channel.toUpperCase()}_KEY=${signingKey}`)
}
// #endregion set-up
