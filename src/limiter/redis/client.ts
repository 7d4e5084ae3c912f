type Arguments = (string | number | Buffer)[]

/** What the limiter needs of a connection: an ioredis `Redis` or `Cluster`, 5 or 6, best one of its own. */
export interface LimiterRedis {
  readonly isCluster: boolean
  callBuffer(command: string, ...args: Arguments): Promise<unknown>
}
