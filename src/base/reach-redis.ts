import { Unavailable } from './unavailable.ts'

/** What a command to Redis comes to; `Unavailable` when Redis gives no answer. */
export async function reachRedis<Reply>(command: Promise<Reply>): Promise<Reply> {
  try {
    return await command
  } catch (error) {
    throw new Unavailable('redis', error)
  }
}
