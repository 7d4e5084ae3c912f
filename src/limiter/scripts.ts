/**
 * The Lua scripts of the limiter, read from lua/. In the package `postern-limiter`, the build replaces this file by one
 * with the texts of the scripts, so that bundlers find them.
 */
import { loadScript } from '../base/redis-script.ts'

export const scripts = {
  acquire: loadScript('acquire-N'),
  peek: loadScript('peek-N'),
  release: loadScript('release-N'),
  reset: loadScript('reset-N'),
}
