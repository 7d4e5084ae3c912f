import { Unavailable } from './unavailable.ts'

/** The reply to a Redis command. Throws `Unavailable` if Redis gives no answer. */
export async function reachRedis<Reply>(command: Promise<Reply>): Promise<Reply> {
  try {
    return await command
  } catch (error) {
    throw new Unavailable('redis', error)
  }
}
