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

export interface GuessedOne extends Guessed {
  /** The most guesses that were compared in a day, and the most messages to the number. */
  comparedADay: number
  messagesADay: number
  /** Sign-ins whose code an attacker's send replaced. Their check by the id of the send would be 410. */
  replaced: number
}

const none = (): Guessed => ({
  ...{ compared: 0, made: 0, solved: 0, chance: 0, signIns: 0, failedSignIns: 0 },
})

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

const days = 12
const signInsADay = 9

/**
 * Twelve days with nine sign-ins each. Attackers make 40 guesses before each sign-in. Between its send and its check they
 * make 20 guesses and `bombs` sends, one of which may replace the code. The owner types the newest code. `isKnown`: in a
 * browser in which the owner has signed in on the day before.
 */
export async function guessOne(
  world: World,
  { isKnown, bombs }: { isKnown: boolean; bombs: number },
): Promise<GuessedOne> {
  const result: GuessedOne = { ...none(), comparedADay: 0, messagesADay: 0, replaced: 0 }
  const { call, close } = createCall(world)
  const draw = createDraw(3)
  const target = { channel: victim.channel, to: victim.to }
  const anyIp = () => ips[draw(ips.length)] as string
  const attack = (guesses: number) =>
    Promise.all(
      Array.from({ length: guesses }, () => guess(call, world, victim.to, anyIp(), result)),
    )
  let known: string | undefined
  if (isKnown) {
    const { answer } = await ask('/v1/captchas', target)
    const code = await world.readCode(answer.id)
    known = (await ask('/v1/captchas/check', { ...target, code })).answer.known
  }
  for (let day = 0; day < days; day++) {
    const compared = result.compared
    let messages = 0
    for (let nth = 0; nth < signInsADay; nth++) {
      const atMs = (day + 1) * 24 * hourMs + nth * 2 * hourMs
      world.setTime(atMs)
      await attack(40)
      result.signIns += 1
      const sent = await ask('/v1/captchas', { ...target, known })
      if (sent.status === 202) messages += 1
      world.setTime(atMs + 15_000)
      await attack(20)
      const bombed = await Promise.all(
        Array.from({ length: bombs }, () => send(call, world, anyIp(), target, result)),
      )
      const replacing = bombed.filter((id) => id !== undefined)
      messages += replacing.length
      await attack(replacing.length > 0 ? 20 : 0)
      if (sent.status === 202 && replacing.length > 0) result.replaced += 1
      const newest = replacing.at(-1) ?? sent.answer.id
      if (sent.status !== 202 || (await fails(newest))) result.failedSignIns += 1
    }
    result.comparedADay = Math.max(result.comparedADay, result.compared - compared)
    result.messagesADay = Math.max(result.messagesADay, messages)
  }
  await close()
  return result

  async function fails(id: string): Promise<boolean> {
    const code = await world.readCode(id)
    const { status, answer } = await ask('/v1/captchas/check', { ...target, code, known })
    known = answer.known ?? known
    return status !== 200
  }

  /** A call by the owner, whose page solves challenges. */
  async function ask(path: string, body: object) {
    const ownIp = '81.2.69.142'
    const first = await call(path, ownIp, body)
    if (first.status !== 403) return first
    const challenge = await world.solve(first.answer.challenge.challenge)
    return call(path, ownIp, { ...body, challenge })
  }
}

/** A send by an attacker. Returns the id of an accepted send. */
async function send(
  call: Call,
  world: World,
  ip: string,
  target: object,
  result: Guessed,
): Promise<string | undefined> {
  let { status, answer } = await call('/v1/captchas', ip, target)
  if (status === 403 && world.isSolving) {
    result.solved += 1
    const challenge = await world.solve(answer.challenge.challenge)
    ;({ status, answer } = await call('/v1/captchas', ip, { ...target, challenge }))
  }
  return status === 202 ? answer.id : undefined
}

/** Requests a code for each of so many numbers, and guesses three times at each. */
export async function guessMany(world: World, numbers: number): Promise<Guessed> {
  const result = none()
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
