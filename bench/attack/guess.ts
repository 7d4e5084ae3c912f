/** Attacks that guess codes: of one number while its owner signs in, and one try at each of many numbers. */
import { createDraw, hourMs, victim } from './day.ts'
import { type Call, createCall, type World } from './world.ts'

export interface Guessed {
  /** Guesses that were compared with a code. The others were refused, needed a challenge, or met no code. */
  compared: number
  made: number
  solved: number
  /** The chance that a compared guess was right. */
  chance: number
  signIns: number
  failedSignIns: number
}

const ips = Array.from({ length: 500 }, (_, index) => `45.${index >> 8}.${index & 255}.7`)

/** A guess by an attacker, who solves challenges or does not. */
async function guess(
  call: Call,
  world: World,
  to: string,
  ip: string,
  result: Guessed,
): Promise<void> {
  result.made += 1
  const body = { channel: 'sms', to, code: '0'.repeat(world.codeLength) }
  let { status, answer } = await call('/v1/captchas/check', ip, body)
  if (status === 403 && world.isSolving) {
    result.solved += 1
    const challenge = await world.solve(answer.challenge.challenge)
    ;({ status, answer } = await call('/v1/captchas/check', ip, { ...body, challenge }))
  }
  if (answer.code === 'code_mismatch') {
    result.compared += 1
    result.chance = 1 - (1 - result.chance) * (1 - 1 / 10 ** world.codeLength)
  }
}

/** Twelve days with nine sign-ins each: 40 guesses before each sign-in, and 20 between its send and its check. */
export async function guessOne(world: World): Promise<Guessed> {
  const result: Guessed = {
    compared: 0,
    made: 0,
    solved: 0,
    chance: 0,
    signIns: 0,
    failedSignIns: 0,
  }
  const { call, close } = createCall(world)
  const draw = createDraw(3)
  const attack = (guesses: number) =>
    Promise.all(
      Array.from({ length: guesses }, () =>
        guess(call, world, victim.to, ips[draw(ips.length)] as string, result),
      ),
    )
  const ownIp = '81.2.69.142'
  for (let signIn = 0; signIn < 108; signIn++) {
    const atMs = Math.floor(signIn / 9) * 24 * hourMs + (signIn % 9) * 2 * hourMs
    world.setTime(atMs)
    await attack(40)
    result.signIns += 1
    const sent = await ask('/v1/captchas', { channel: 'sms', to: victim.to })
    world.setTime(atMs + 15_000)
    if (sent.status !== 202) {
      result.failedSignIns += 1
      continue
    }
    const code = await world.readCode(sent.answer.id)
    await attack(20)
    const checked = await ask('/v1/captchas/check', { channel: 'sms', to: victim.to, code })
    if (checked.status !== 200) result.failedSignIns += 1
  }
  await close()
  return result

  async function ask(path: string, body: object) {
    const first = await call(path, ownIp, body)
    if (first.status !== 403) return first
    const challenge = await world.solve(first.answer.challenge.challenge)
    return call(path, ownIp, { ...body, challenge })
  }
}

/** Requests a code for each of so many numbers, and guesses three times at each. */
export async function guessMany(world: World, numbers: number): Promise<Guessed> {
  const result: Guessed = {
    compared: 0,
    made: 0,
    solved: 0,
    chance: 0,
    signIns: 0,
    failedSignIns: 0,
  }
  const { call, close } = createCall(world)
  const draw = createDraw(5)
  for (let first = 0; first < numbers; first += 32) {
    world.setTime(Math.floor((first / numbers) * 24 * hourMs))
    await Promise.all(
      Array.from({ length: Math.min(32, numbers - first) }, async (_, index) => {
        // Far apart, like the addresses of a site's customers.
        const to = `+8613${String((first + index) * 190_009).padStart(9, '0')}`
        const ip = ips[draw(ips.length)] as string
        const sent = await call('/v1/captchas', ip, { channel: 'sms', to })
        if (sent.status === 403 && world.isSolving) {
          result.solved += 1
          const challenge = await world.solve(sent.answer.challenge.challenge)
          await call('/v1/captchas', ip, { channel: 'sms', to, challenge })
        }
        for (let tries = 0; tries < 3; tries++) await guess(call, world, to, ip, result)
      }),
    )
  }
  await close()
  return result
}
