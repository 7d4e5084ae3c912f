/**
 * All checks of the doctor. Each check has a deadline and fails alone: a server that does not answer must not stop or hide
 * the other checks.
 */
import { isDeepStrictEqual } from 'node:util'
import { examineKeys } from '../access/examine-keys.ts'
import { createKeyStore } from '../access/key-store.ts'
import { about, type Finding, findWithin } from '../base/finding.ts'
import { readEnvironment } from '../config/environment.ts'
import { examineApps } from '../config/examine-apps.ts'
import { examinePolicy, examineProxy } from '../config/examine-policy.ts'
import { examineSecrets } from '../config/examine-secrets.ts'
import { examineMessages } from '../delivery/examine-messages.ts'
import { type Config, loadConfig } from '../main/load-config.ts'
import { defaultKeyPrefix } from '../main/shared.ts'
import { examineProviders } from '../providers/examine-providers.ts'
import type { SmtpSettings } from '../providers/smtp/settings.ts'
import { examineCheckMx, examineMailDomain, type Signer } from '../recipient/examine-mail-domain.ts'
import { domainOf } from '../recipient/facets.ts'
import { createDnsResolver } from '../recipient/mail-domains.ts'
import { createTestRecipients } from '../recipient/test-recipients.ts'
import { examinePostgres } from '../storage/examine-postgres.ts'
import { examineRedis } from '../storage/examine-redis.ts'

type Env = Readonly<Record<string, string | undefined>>

const providerMs = 5_000
const dnsMs = 1_500
const neededNode = 24

const look = (subject: string, work: () => Promise<Finding[]>) => findWithin(8_000, subject, work)

export async function examine(
  env: Env,
  options: { dkimSelector?: string | undefined } = {},
): Promise<Finding[]> {
  const loaded = await loadConfig(env)
  const looks = [
    look('settings', async () => examineSettings(loaded)),
    look('secrets', async () => examineSecrets(env)),
    ...serverLooks(env, loaded.ok ? loaded.config.file : undefined),
  ]
  if (loaded.ok) looks.push(...configLooks(loaded.config, options.dkimSelector))
  return (await Promise.all(looks)).flat()
}

function examineSettings(loaded: Awaited<ReturnType<typeof loadConfig>>): Finding[] {
  const { ok, error } = about('settings')
  const { node } = process.versions
  return [
    ...(loaded.ok
      ? [ok('environment, policy file and templates are correct')]
      : loaded.problems.map((problem) =>
          error(problem, 'correct it; until then no process can start'),
        )),
    Number.parseInt(node, 10) >= neededNode
      ? ok(`Node ${node}`)
      : error(`Node ${node} is too old`, `install Node ${neededNode} or later`),
  ]
}

/** Checks Redis and PostgreSQL even if other settings are wrong. */
function serverLooks(env: Env, file: Config['file'] | undefined): Promise<Finding[]>[] {
  const { REDIS_URL: redisUrl, DATABASE_URL: databaseUrl } = env
  const read = readEnvironment(env)
  const isRight = (name: string) =>
    read.ok || !read.problems.some((problem) => problem.startsWith(name))
  const looks: Promise<Finding[]>[] = []
  if (redisUrl && isRight('REDIS_URL')) {
    looks.push(look('redis', () => examineRedis(redisUrl, defaultKeyPrefix)))
  }
  if (databaseUrl && isRight('DATABASE_URL')) {
    looks.push(
      look('postgresql', () =>
        examinePostgres(databaseUrl, async (database) => {
          const keys = await createKeyStore(database).list()
          const ofApps = keys.filter(({ isRevoked, kind }) => !isRevoked && kind !== 'operator')
          const apps = ofApps.map(({ app }) => app)
          return [...examineKeys(keys), ...(file ? examineApps(file, apps) : [])]
        }),
      ),
    )
  }
  return looks
}

/** The number of test recipients whose fixed codes pass now. */
function passingTestRecipients({ testing, recipients }: Config['file']): number {
  const { defaultCountry } = recipients
  return createTestRecipients(testing, { defaultCountry, nowMs: Date.now }).list().length
}

function configLooks(
  { environment, file, templates, providers }: Config,
  dkimSelector: string | undefined,
): Promise<Finding[]>[] {
  const resolver = createDnsResolver(dnsMs)
  return [
    look('policy file', async () => examinePolicy(file, passingTestRecipients(file))),
    look('proxy', async () => examineProxy(environment)),
    look('routes', async () => examineMessages(file, templates)),
    look('providers', () => examineProviders(providers, providerMs)),
    ...[...signersOf(providers, dkimSelector)].map(([domain, signers]) =>
      look(`mail from ${domain}`, () => examineMailDomain(resolver, domain, signers)),
    ),
    ...(file.recipients.mail.checkMx ? [look('checkMx', () => examineCheckMx(resolver))] : []),
  ]
}

/** The signatures on mails from each domain. `selector` is of a signature that the mail server adds. */
function signersOf(providers: Config['providers'], selector: string | undefined) {
  const signers = new Map<string, Signer[]>()
  for (const { kind, settings } of providers.values()) {
    if (kind.kind !== 'smtp') continue
    const { from, dkim } = settings as SmtpSettings
    const domain = domainOf(from.address).toLowerCase()
    const known = signers.get(domain) ?? (selector === undefined ? [] : [{ domain, selector }])
    const isKnown = known.some((signer) => isDeepStrictEqual(signer, dkim))
    signers.set(domain, dkim && !isKnown ? [...known, dkim] : known)
  }
  return signers
}
