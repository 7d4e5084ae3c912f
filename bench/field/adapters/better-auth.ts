/** better-auth's plugins for phone numbers and mail, with their own rules. npm installs its packages, once. */
import { copyFileSync, cpSync, existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { runProgram } from '../../../src/dev/server-process.ts'
import { repository } from '../../harness/bench.ts'
import { createClient } from '../client.ts'
import type { Adapter, Checked } from '../service.ts'

const source = join(repository, 'bench/field/targets/better-auth')
const folder = join(repository, 'node_modules/.cache/postern-bench-better-auth')

const checks: Record<string, Checked> = {
  INVALID_OTP: { is: 'wrong' },
  OTP_NOT_FOUND: { is: 'gone' },
  OTP_EXPIRED: { is: 'gone' },
  TOO_MANY_ATTEMPTS: { is: 'gone' },
}

export const betterAuth: Adapter = {
  name: 'better-auth, its own limits',
  async start(world) {
    await install()
    const env = { PROVIDER_URL: world.providerUrl }
    const server = await world.start('server.mjs', { env, cwd: folder })
    const client = createClient(server.url, { origin: server.url })
    return {
      processes: [server],
      async send({ channel, to, ip }) {
        const { status, headers } =
          channel === 'sms'
            ? await client.post('/api/auth/phone-number/send-otp', ip, { phoneNumber: to })
            : await client.post('/api/auth/email-otp/send-verification-otp', ip, {
                ...{ email: to, type: 'sign-in' },
              })
        if (status === 200) return { is: 'accepted' }
        return { is: 'refused', waitMs: Number(headers['x-retry-after']) * 1_000 || undefined }
      },
      async check({ channel, to, ip, code }) {
        const { status, answer } =
          channel === 'sms'
            ? await client.post('/api/auth/phone-number/verify', ip, { phoneNumber: to, code })
            : await client.post('/api/auth/sign-in/email-otp', ip, { email: to, otp: code })
        if (status === 200) return { is: 'passed' }
        return checks[answer.code] ?? { is: 'refused' }
      },
      close: () => client.close(),
    }
  },
}

async function install(): Promise<void> {
  if (!existsSync(folder)) {
    const unfinished = `${folder}.unfinished`
    rmSync(unfinished, { recursive: true, force: true })
    cpSync(source, unfinished, { recursive: true })
    const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']
    await runProgram(['npm', 'install', ...flags], unfinished)
    renameSync(unfinished, folder)
  }
  copyFileSync(join(source, 'server.mjs'), join(folder, 'server.mjs'))
}
