/**
 * The one seam between the limiter and Lua. Here the scripts are read from lua/; the package `postern-limiter` gets a
 * file of the same shape in this one's place, with the texts in it, so that bundlers find them too.
 */
import { loadScript } from '../base/redis-script.ts'

export const scripts = {
  acquire: loadScript('acquire-N'),
  peek: loadScript('peek-N'),
  release: loadScript('release-N'),
  reset: loadScript('reset-N'),
}
