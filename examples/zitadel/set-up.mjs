/**
 * Makes Postern the provider of Zitadel for SMS and mail. See docs/guides/zitadel.md.
 *
 *   ZITADEL_URL=https://auth.example ZITADEL_TOKEN=… POSTERN_URL=https://codes.example node set-up.mjs
 *   ZITADEL_URL=https://auth.example ZITADEL_TOKEN=… node set-up.mjs activate sms=<id> email=<id>
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
async function make(channel) {
  const endpoint = `${POSTERN_URL}/v1/hooks/zitadel-${channel}`
  const { id, signingKey } = await call(`/${channel}/http`, { endpoint, description: 'Postern' })
  console.log(`ZITADEL_${channel.toUpperCase()}_KEY=${signingKey}`)
  return `${channel}=${id}`
}

const activate = (channel, id) => call(`/${channel}/${id}/_activate`, {})
// #endregion set-up

const [step, ...providers] = process.argv.slice(2)
if (step === 'activate') for (const provider of providers) await activate(...provider.split('='))
else console.log(`\nnode set-up.mjs activate ${await make('sms')} ${await make('email')}`)
