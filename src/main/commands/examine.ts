/** All checks of the doctor. Each has a deadline and fails alone, so that the other results are always shown. */
import { examineKeys } from '../../access/examine-keys.ts'
import { createKeyStore } from '../../access/key-store.ts'
import { about, type Finding, findWithin } from '../../base/finding.ts'
import { readEnvironment } from '../../config/environment.ts'
import {
  examineApps,
  examinePolicy,
  examineProxy,
  examineSettings,
} from '../../config/examine-policy.ts'
import { examineSecrets } from '../../config/examine-secrets.ts'
import { examineMessages } from '../../delivery/examine-messages.ts'
import { examineProviders } from '../../providers/examine-providers.ts'
import { createServes } from '../../providers/kinds.ts'
import { mailSendersOf } from '../../providers/mail-senders.ts'
import { examineCheckMx, examineMailDomain } from '../../recipient/examine-mail-domain.ts'
import { createDnsResolver } from '../../recipient/mail-domains.ts'
import { createTestRecipients } from '../../recipient/test-recipients.ts'
import { examinePostgres } from '../../storage/examine-postgres.ts'
import { examineRedis } from '../../storage/examine-redis.ts'
import { type Config, loadConfig } from '../load-config.ts'
import { defaultKeyPrefix } from '../shared.ts'

type Env = Readonly<Record<string, string | undefined>>

const providerMs = 5_000
const dnsMs = 1_500

const look = (subject: string, work: () => Promise<Finding[]>) => findWithin(8_000, subject, work)

export async function examine(env: Env, dkimSelector?: string): Promise<Finding[]> {
  const loaded = await loadConfig(env)
  const looks = [
    look('settings', async () => examineSettings(loaded.ok ? [] : loaded.problems)),
    look('secrets', async () => examineSecrets(env, loaded.ok ? loaded.config.facadeSecrets : {})),
    ...serverLooks(env, loaded.ok ? loaded.config.file : undefined),
  ]
  if (loaded.ok) looks.push(...configLooks(loaded.config, dkimSelector))
  return (await Promise.all(looks)).flat()
}

/** Checks Redis and PostgreSQL even if other settings are wrong. */
function serverLooks(env: Env, file: Config['file'] | undefined): Promise<Finding[]>[] {
  const { REDIS_URL: redisUrl, DATABASE_URL: databaseUrl } = env
  const read = readEnvironment(env)
  const isRight = (name: string) =>
    read.ok || !read.problems.some((problem) => problem.startsWith(name))
  const redis = (url: string) => look('redis', () => examineRedis(url, defaultKeyPrefix))
  const postgres = (url: string) =>
    look('postgresql', () =>
      examinePostgres(url, async (database) => {
        const keys = await createKeyStore(database).list()
        const ofApps = keys.filter(({ isRevoked, kind }) => !isRevoked && kind !== 'operator')
        const apps = ofApps.map(({ app }) => app)
        return [...examineKeys(keys), ...(file ? examineApps(file, apps) : [])]
      }),
    )
  return [
    ...(redisUrl && isRight('REDIS_URL') ? [redis(redisUrl)] : []),
    ...(databaseUrl && isRight('DATABASE_URL') ? [postgres(databaseUrl)] : []),
  ]
}

function configLooks(
  { environment, file, templates, providers, warnings }: Config,
  dkimSelector: string | undefined,
): Promise<Finding[]>[] {
  const resolver = createDnsResolver(dnsMs)
  const { defaultCountry } = file.recipients
  const passing = createTestRecipients(file.testing, { defaultCountry, nowMs: Date.now }).list()
  return [
    look('policy file', async () => examinePolicy(file, passing.length, createServes(providers))),
    look('proxy', async () => examineProxy(environment)),
    look('senders', async () => warnings.map((each) => about('senders').warning(each))),
    look('routes', async () => examineMessages(file, templates)),
    look('providers', () => examineProviders(providers, providerMs)),
    ...[...mailSendersOf(providers, dkimSelector)].map(([domain, sender]) =>
      look(`mail from ${domain}`, () => examineMailDomain(resolver, domain, sender)),
    ),
    ...(file.recipients.mail.checkMx ? [look('checkMx', () => examineCheckMx(resolver))] : []),
  ]
}
