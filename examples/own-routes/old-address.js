/**
 * A plugin with routes: the addresses of an earlier service for codes, for apps that cannot be changed today.
 *
 *   plugins: [./old-address.js]          # in the policy file
 */
import { json, Router } from 'express'

const app = 'web'
const channel = 'sms'

export default {
  name: 'old-address',
  router: (postern) =>
    Router()
      .post('/otp/send', json(), async ({ body, ip }, response) => {
        const asked = { app, channel, to: body?.phone, scene: 'signup', ip }
        const { outcome } = await postern.sendCaptcha(asked)
        response.status(outcome === 'accepted' ? 200 : 400).json({ result: outcome })
      })
      .post('/otp/check', json(), async ({ body, ip }, response) => {
        const asked = { app, channel, to: body?.phone, scene: 'signup', code: body?.code, ip }
        const { outcome } = await postern.checkCaptcha(asked)
        response.json({ verified: outcome === 'passed' })
      }),
}
