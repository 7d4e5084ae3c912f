/** Parts of the sentences that explain.ts builds, in English and Chinese. */
import { inWholeUnits } from '../base/durations.ts'
import type { Kind, Lock, Rule } from '../limiter/index.ts'
import type { Uses } from './policies.ts'

export type Language = 'en' | 'zh'

export interface RuleWords {
  /** The subject that a rule counts: the nouns of its fields, and whether each app counts separately. */
  subject(nouns: readonly string[], isOfApp: boolean): string
  /** The noun of a field that is not in the catalogue. */
  field(name: string): string
  nothing(subject: string): string
  limits: Readonly<Record<Exclude<Kind, 'lockout'>, (rule: Rule, subject: string) => string>>
  lockout(rule: Rule, uses: Uses, lock: Lock | undefined, subject: string): string
  refused: string
  observed: string
  challenged: string
  price: string
  permits(count: number): string
  permitsOf(field: string): string
  refunded: string
  uncounted: string
  perClient: string
}

const number = (value: number) => value.toLocaleString('en')

function joined(parts: readonly string[], comma: string, and: string): string {
  if (parts.length < 2) return parts[0] ?? ''
  return `${parts.slice(0, -1).join(comma)}${and}${parts.at(-1)}`
}

function inEnglish(ms: number): string {
  const { count, unit } = inWholeUnits(ms)
  return `${number(count)} ${unit === 'm' ? 'min' : unit}`
}

const counted: Readonly<Record<Uses, readonly [one: string, many: string]>> = {
  checks: ['wrong code', 'wrong codes'],
  sends: ['send', 'sends'],
  tries: ['try', 'tries'],
  uses: ['use', 'uses'],
}

const en: RuleWords = {
  subject(nouns, isOfApp) {
    if (nouns.length === 0) return isOfApp ? 'one app' : 'all requests together'
    return `${joined(nouns, ', ', ' and ')}${isOfApp ? ' of one app' : ''}`
  },
  field: (name) => `one {${name}}`,
  nothing: (subject) => `Nothing passes for ${subject}.`,
  limits: {
    sliding({ windows }, subject) {
      const each = windows.map(({ limit, window }) => `${number(limit)} per ${window}`)
      return `At most ${joined(each, ', ', ' and ')} for ${subject}`
    },
    fixed({ windows }, subject) {
      const each = windows.map(
        ({ limit, window }) => `${number(limit)} in the ${window} after the first`,
      )
      return `At most ${joined(each, ', ', ' and ')}, for ${subject}`
    },
    bucket: ({ windows: [first] }, subject) =>
      `At most ${number(first.limit)} at once, then ${first.window}, for ${subject}`,
    calendar: ({ windows: [first], calendar: { cron, timezone } = noCalendar }, subject) =>
      `At most ${number(first.limit)} in each period of "${cron}" (${timezone}), for ${subject}`,
  },
  lockout({ windows: [first] }, uses, lock, subject) {
    const [one, many] = counted[uses]
    const limit = first.limit
    const after = `After ${number(limit)} ${limit === 1 ? one : many} within ${first.window} for ${subject}`
    if (!lock) return after
    const { lockMs, growth, maxLockMs } = lock
    // The wrong code that uses up the limit begins the lock.
    const locks = uses === 'checks' ? 'checks are locked for' : 'the next one locks for'
    const grows = `, each further lock ${growth} times longer, up to ${inEnglish(maxLockMs)}`
    return `${after}, ${locks} ${inEnglish(lockMs)}${growth > 1 ? grows : ''}.`
  },
  refused: '; more are refused.',
  observed: '; more are counted and reported, and pass.',
  challenged: '; more need a challenge (calls with secret keys pass without one).',
  price: " Each counts with its message's price.",
  permits: (count) => ` Each counts as ${number(count)}.`,
  permitsOf: (field) => ` Each counts with the value of its field ${field}.`,
  refunded: ' The uses of a code are given back when it passes.',
  uncounted: ' A right code is not counted.',
  perClient: ' Every process counts separately.',
}

const noCalendar = { cron: '', timezone: '' }

const unitsInChinese = { ms: '毫秒', s: '秒', m: '分钟', h: '小时', d: '天' }

function inChinese(ms: number): string {
  const { count, unit } = inWholeUnits(ms)
  return `${number(count)} ${unitsInChinese[unit]}`
}

/** A window of the policy in Chinese, in the same unit. */
const windowInChinese = (window = '') =>
  window.replace(
    /^(\d+)([a-z]+)$/,
    (_, count, unit: keyof typeof unitsInChinese) => `${count} ${unitsInChinese[unit]}`,
  )

const countedInChinese = { checks: '输错', sends: '发送', tries: '尝试', uses: '使用' }

const zh: RuleWords = {
  subject(nouns, isOfApp) {
    if (nouns.length === 0) return isOfApp ? '同一应用' : '所有请求合计'
    return `${isOfApp ? '同一应用的' : ''}${joined(nouns, '、', '和')}`
  },
  field: (name) => `同一 {${name}}`,
  nothing: (subject) => `${subject}一律不放行。`,
  limits: {
    sliding({ windows }, subject) {
      const each = windows.map(
        ({ limit, window }) => `每 ${windowInChinese(window)}最多 ${number(limit)} 次`,
      )
      return `${subject}${each.join('，')}`
    },
    fixed({ windows }, subject) {
      const each = windows.map(
        ({ limit, window }) => `${windowInChinese(window)}内最多 ${number(limit)} 次`,
      )
      return `${subject}自第一次起，${each.join('，')}`
    },
    bucket({ windows: [first] }, subject) {
      const [refill, window] = first.window.split(' per ')
      return `${subject}可连续 ${number(first.limit)} 次，之后每 ${windowInChinese(window)}恢复 ${refill} 次`
    },
    calendar: ({ windows: [first], calendar: { cron, timezone } = noCalendar }, subject) =>
      `${subject}在每个周期（"${cron}"，时区 ${timezone}）内最多 ${number(first.limit)} 次`,
  },
  lockout({ windows: [first] }, uses, lock, subject) {
    const verb = countedInChinese[uses]
    const after = `${subject}在 ${windowInChinese(first.window)}内${verb} ${number(first.limit)} 次后`
    if (!lock) return after
    const { lockMs, growth, maxLockMs } = lock
    const locks = uses === 'checks' ? '校验被锁定' : `再次${verb}会被锁定`
    const grows = `，之后每次锁定延长为 ${growth} 倍，最长 ${inChinese(maxLockMs)}`
    return `${after}，${locks} ${inChinese(lockMs)}${growth > 1 ? grows : ''}。`
  },
  refused: '，超出的被拒绝。',
  observed: '，超出的仍放行，只计数并报告。',
  challenged: '，超出的须完成人机验证（私密密钥不受此限，直接放行）。',
  price: '每次按消息的价格计数。',
  permits: (count) => `每次计为 ${number(count)} 次。`,
  permitsOf: (field) => `每次按字段 ${field} 的值计数。`,
  refunded: '验证码通过后，其占用的次数退还。',
  uncounted: '正确的验证码不计数。',
  perClient: '每个进程单独计数。',
}

export const ruleWords: Readonly<Record<Language, RuleWords>> = { en, zh }
