/**
 * CAMARA's own 32 scenarios for one-time passwords, read from their feature files, run unchanged with a running API.
 * Each answer is also compared with the definition.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { apiKey } from '../tools/api-key.ts'
import { findForeign } from '../tools/foreign.ts'
import { noLimits, type Reply, startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'
import { scenariosIn } from './gherkin.ts'

const foreign = findForeign('camara')
const folder = foreign.path
const read = (file: string) => readFileSync(join(folder, file), 'utf8')
const features = ['sendCode', 'validateCode'].map((name) => `one-time-password-sms-${name}.feature`)
const scenarios = foreign.isMissing ? [] : features.flatMap((file) => scenariosIn(read(file)))

const maxCodes = 2
const configVars: Record<string, unknown> = {
  message: '{{code}} is your code for Cool App',
  max_send: maxCodes + 1,
  max_try: 3,
  max_lenght: 160,
}
const numbers: Record<string, string> = {
  'cannot receive SMS': '+33891234567',
  'target a landline': '+33142345678',
  'that has an active SMS barring': '+33698765432',
  'did not belong to the operator': '+447400123456',
}

test.skipIf(foreign.isMissing)(`there are 32 scenarios${foreign.note}`, () => {
  expect(scenarios).toHaveLength(32)
})

describe.skipIf(foreign.isMissing)(`the scenarios of CAMARA${foreign.note}`, async () => {
  if (foreign.isMissing) return
  const postern = await startPostern({
    policyFile: {
      compat: { camara: { maxCodes, window: '24h' } },
      policies: noLimits,
      recipients: { countries: ['FR'], refuse: [numbers['that has an active SMS barring']] },
    },
  })
  const expired = await apiKey(postern.database, { expiresAt: new Date(Date.now() - 60_000) })
  const expectDefined = comparedWith(parse(read('one-time-password-sms.yaml')))
  let people = 0

  test.each(scenarios.map(({ tag, title, steps }) => [tag, title, steps] as const))(
    '%s: %s',
    async (_, __, steps) => {
      const scenario = createScenario()
      for (const step of steps) await scenario.take(step)
      expect(scenario.isChecked()).toBe(true)
    },
  )

  function createScenario() {
    const to = `+336123${String(++people).padStart(5, '0')}`
    const headers: Record<string, string> = {}
    let resource = ''
    let body: Record<string, unknown> | undefined = {}
    let id = ''
    let reply: Reply | undefined
    let isChecked = false

    const call = (path: string, sent: unknown) =>
      postern.post(path, sent, { key: null, headers: { ...headers } })
    const send = async () => {
      const sent = await call('/one-time-password-sms/v1/send-code', {
        phoneNumber: to,
        message: configVars.message,
      })
      expect(sent.status).toBe(200)
      return sent.body.authenticationId as string
    }
    const set = (name: string, value: unknown) => {
      body = { ...body, [name]: value }
    }
    const codeOf = (sent: string) => postern.codeFor(sent)
    const wrongCode = async (sent: string) => ((await codeOf(sent)) === '0000' ? '1111' : '0000')
    /** The id in the body, from a new send if there was none. */
    const givenId = async () => {
      id ||= await send()
      set('authenticationId', id)
      return id
    }
    const wrongGuess = async () => set('code', await wrongCode(await givenId()))

    const steps: [RegExp, (...groups: string[]) => unknown][] = [
      [/^an environment at "apiRoot"$/, () => {}],
      [/^the resource "(.*)"$/, (path) => (resource = path)],
      [/^the header "Content-Type" is set to "(.*)"$/, (type) => (headers['content-type'] = type)],
      [
        /^the header "Authorization" is set(?: to a valid access token)?$/,
        () => (headers.authorization = `Bearer ${postern.key}`),
      ],
      [
        /^the header "x-correlator" complies with the schema at "#\/components\/schemas\/XCorrelator"$/,
        () => (headers['x-correlator'] = randomUUID()),
      ],
      [/^the header "Authorization" is removed$/, () => delete headers.authorization],
      [
        /^the header "Authorization" is set to an expired(?: access token)?$/,
        () => (headers.authorization = `Bearer ${expired}`),
      ],
      [
        /^the header "Authorization" is set to an invalid access token$/,
        () => (headers.authorization = 'Bearer psk_of_nobody'),
      ],
      [
        /^the request body is set by default to a request body compliant with the schema$/,
        () =>
          (body = resource.endsWith('send-code')
            ? { phoneNumber: to, message: configVars.message }
            : { code: '0000' }),
      ],
      [/^the request body is not included$/, () => (body = undefined)],
      [/^the request body is set to "\{\}"$/, () => (body = {})],
      [
        /^the request body property "\$\.(\w+)" is set to config_var: "(\w+)"$/,
        (name, variable) => set(name, variable === 'phone_number' ? to : configVars[variable]),
      ],
      [/^the request body property "\$\.(\w+)" is not valued$/, (name) => delete body?.[name]],
      [
        /^the request body property "\$\.(message)" is longer than config_var:"max_lenght"$/,
        (name) => set(name, `{{code}}${'x'.repeat(Number(configVars.max_lenght) - 7)}`),
      ],
      [
        /^the request body property "\$\.(phoneNumber)" is set to a phone number that (?:that )?(.*)$/,
        (name, kind) => set(name, numbers[kind] ?? numbers[`that ${kind}`]),
      ],
      [
        /^\(config_var:"max_send"-1\) of send-code requests for this phone number has been submitted$/,
        async () => {
          for (let sent = 1; sent < Number(configVars.max_send); sent++) await send()
        },
      ],
      [/^an authenticationId has been retrieved from a send-code request$/, givenId],
      [
        /^(?:the )?request body property "\$\.authenticationId" is set to the value (?:from send-code request|got for the first send-code request)$/,
        givenId,
      ],
      [
        /^the request body property "\$\.code" is set to the (?:value |code )?received in the SMS(?: for this first request)?$/,
        async () => set('code', await codeOf(await givenId())),
      ],
      [
        /^the request body property "\$\.code" is set to a format valid value$/,
        () => set('code', '1234'),
      ],
      [
        /^the request body property "\$\.code" is set to a value distinct from the value received in the SMS$/,
        wrongGuess,
      ],
      [
        /^\(config_var:"max_try"-1\) calls with the request body property "\$\.code" set to a value distinct from the value received in the SMS were performed$/,
        async () => {
          await wrongGuess()
          for (let tries = 1; tries < Number(configVars.max_try); tries++) {
            expect((await call(resource, body)).body.code).toBe('ONE_TIME_PASSWORD_SMS.INVALID_OTP')
          }
        },
      ],
      [/^the time elapsed since the send-code exceed the allowed time$/, () => expireCodes()],
      [
        /^Two send-code request has been sequentially triggered for the same phoneNumber$/,
        async () => {
          id = await send()
          await codeOf(id)
          await send()
        },
      ],
      [
        /^a validate-code has been succesfully performed for a authenticationId$/,
        async () => {
          const code = await codeOf(await givenId())
          expect((await call(resource, { authenticationId: id, code })).status).toBe(204)
        },
      ],
      [
        /^request body property "\$\.authenticationId" is valued again with this authenticationId$/,
        givenId,
      ],
      [
        /^the request body property "\$\.authenticationId" is set to an unknown value$/,
        () => set('authenticationId', randomUUID()),
      ],
      [/^the request body property "\$\.(\w+)" is set to "(.*)"$/, set],
      [
        /^the HTTP "POST" request is sent$/,
        async () => {
          reply = await call(resource, body)
          expectDefined(resource, reply)
        },
      ],
      [
        /^the response (?:property "\$\.status" is|status code is) (\d+)$/,
        (status) => {
          expect(reply?.status).toBe(Number(status))
          if (Number(status) >= 400) expect(reply?.body.status).toBe(Number(status))
          isChecked = true
        },
      ],
      [
        /^the response property "\$\.code" is "(.*)"$/,
        (code) => expect(reply?.body.code).toBe(code),
      ],
      [
        /^the response property "\$\.message" contains a user friendly text$/,
        () => expect(reply?.body.message).toMatch(/^[A-Z].{10,}\.$/),
      ],
      [
        /^the response header "Content-Type" is "(.*)"$/,
        (type) => expect(reply?.headers.get('content-type')).toBe(type),
      ],
      [
        /^the response header "x-correlator" has same value as the request header "x-correlator"$/,
        () => expect(reply?.headers.get('x-correlator')).toBe(headers['x-correlator']),
      ],
      [
        /^the response body complies with the OAS schema at "\/components\/schemas\/SendCodeResponse"$/,
        () => expectDefined(resource, reply as Reply),
      ],
    ]

    return {
      isChecked: () => isChecked,
      async take(step: string): Promise<void> {
        for (const [pattern, run] of steps) {
          const match = pattern.exec(step)
          if (match) return void (await run(...match.slice(1)))
        }
        throw new Error(`no step: ${step}`)
      },
    }
  }

  async function expireCodes(): Promise<void> {
    const { client, prefix } = postern.redis
    const codes = () => client.keys(`${prefix}code:*`)
    for (const key of await codes()) await client.pexpire(key, 1)
    await eventually(async () => expect(await codes()).toEqual([]))
  }
})

/** Compares an answer with the response that the definition has for its path and status. */
function comparedWith(definition: { paths: Record<string, unknown> }) {
  const ajv = new Ajv({ strict: false, logger: false })
  ajv.addSchema(definition, 'definition')
  const at = (pointer: string) =>
    pointer
      .split('/')
      .slice(1)
      .reduce((value: unknown, name) => {
        const key = name.replaceAll('~1', '/').replaceAll('~0', '~')
        return (value as Record<string, unknown>)[key]
      }, definition)

  return (resource: string, { status, headers, body }: Reply): void => {
    const path = resource.replace('/one-time-password-sms/v1', '').replaceAll('/', '~1')
    const place = `/paths/${path}/post/responses/${status}`
    const response = at(place) as { $ref?: string; content?: object } | undefined
    expect(response, `${place} is in the definition`).toBeDefined()
    const { $ref: reference } = response as { $ref?: string }
    const resolved = reference?.slice(1) ?? place
    const { content } = at(resolved) as { content?: object }
    if (!content) {
      expect(body).toBe('')
      return
    }
    expect(headers.get('content-type')).toBe('application/json')
    const schema = `definition#${resolved}/content/application~1json/schema`
    const validate = ajv.compile({ $ref: schema })
    expect(validate(body), JSON.stringify(validate.errors)).toBe(true)
  }
}
