/** What is good once (an answer to a challenge, a pass): taken for a request, and given back when that came to nothing. */
import { loadScript } from './redis-script.ts'

export const takeOnce = loadScript('take-answer-1')
export const returnOnce = loadScript('return-answer-1')
