/**
 * The order of docs/ in the sidebar: the guide in the order of a reader's tasks, the reference, and pages for
 * developers.
 */
import type { DefaultTheme } from 'vitepress'

/** A page with its title in both languages. */
type Entry = readonly [path: string, english: string, chinese: string]

/** Pages for developers of Postern, and pages made from the code. Every other page exists in Chinese too. */
export const englishOnly = [
  'performance',
  'benchmark',
  'invariants',
  'testing',
  'decisions/',
  'reference/',
]

const start: readonly Entry[] = [
  ['/start', 'Start', '快速开始'],
  ['/guides/sign-up-page', 'A sign-up page', '注册页'],
  ['/code-field', 'Code field', '验证码输入框'],
  ['/guides/frameworks', 'Frameworks', '前端框架'],
  ['/guides/your-language', 'From your language', '用你的语言'],
  ['/guides/passkey', 'Then a passkey', '再用通行密钥'],
  ['/guides/providers', 'Providers', '服务商'],
  ['/guides/senders', 'Senders in each country', '各国的发送方'],
  ['/guides/go-live', 'Go live', '上线'],
]

const limits: readonly Entry[] = [
  ['/guides/limits', 'Limits', '限额'],
  ['/guides/rule-kinds', 'Kinds of rules', '规则的种类'],
  ['/abuse', 'Against abuse', '防滥用'],
  ['/when-not-sms', 'When not to use SMS', '何时不用短信'],
]

const more: readonly Entry[] = [
  ['/support', 'Support', '客服'],
  ['/operations', 'Operations', '运维'],
  ['/guides/traces', 'Traces', '链路追踪'],
  ['/guides/login-lock', 'Login lock', '登录锁定'],
  ['/guides/workflows', 'Several ways to the person', '多种方式'],
  ['/guides/notices', 'Notices', '通知'],
  ['/guides/suppression', 'Bounces, complaints, opt-outs', '退信、投诉与退订'],
  ['/embedding', 'Inside an Express app', '嵌入 Express 应用'],
  ['/guides/own-provider', 'A provider of your own', '自己写服务商'],
  ['/comparison', 'Comparison', '与其他产品比较'],
]

const others: readonly Entry[] = [
  ['/guides/supabase', 'Supabase Auth', 'Supabase Auth'],
  ['/guides/zitadel', 'Zitadel', 'Zitadel'],
  ['/guides/logto', 'Logto', 'Logto'],
  ['/guides/better-auth', 'better-auth', 'better-auth'],
  ['/guides/camara', 'Programs for CAMARA', 'CAMARA 程序'],
  ['/guides/twilio-verify', 'Programs for Twilio Verify', '为 Twilio Verify 编写的程序'],
]

const reference: readonly Entry[] = [
  ['/concepts', 'Concepts and glossary', '概念与词汇'],
  ['/http', 'HTTP', 'HTTP'],
  ['/reference/calls', 'Calls and their fields', '接口与字段（英文）'],
  ['/passes', 'Passes', '凭证'],
  ['/events', 'Events', '事件'],
  ['/policy-file', 'Policy file', '策略文件'],
  ['/reference/sms-rules', 'Rules of countries for SMS', '各国短信规则（英文）'],
  ['/reference/environment', 'Environment', '环境变量（英文）'],
  ['/servers', 'PostgreSQL and Redis', 'PostgreSQL 与 Redis'],
  ['/scale', 'Scale', '规模'],
  ['/metrics', 'Metrics', '指标'],
  ['/limiter', 'Limiter', '限流器'],
]

const kinds = [
  ...['smtp', 'ses', 'aliyun', 'aliyun-pnvs', 'tencent', 'twilio', 'vonage', 'smpp'],
  ...['whatsapp', 'telegram', 'http', 'webhook', 'sandbox'],
]
const providers: readonly Entry[] = [
  ['/providers/', 'Overview', '概览'],
  ...kinds.map((kind): Entry => [`/providers/${kind}`, kind, kind]),
]

const inside: readonly Entry[] = [
  ['/decisions/', 'Decisions', '设计决定'],
  ['/invariants', 'Invariants and faults', '不变量与故障'],
  ['/performance', 'Performance', '性能'],
  ['/benchmark', 'Benchmark', '基准测试'],
  ['/testing', 'Testing', '测试'],
]

/** A group of the sidebar. Groups that few readers need are folded. */
type Group = readonly [
  english: string,
  chinese: string,
  entries: readonly Entry[],
  collapsed?: boolean,
]

const groups: readonly Group[] = [
  ['From nothing to live', '从零到上线', start],
  ['Limits and abuse', '限额与滥用', limits],
  ['More', '更多', more],
  ['With other products', '与其他产品配合', others],
  ['Reference', '参考', reference],
  ['Provider kinds', '服务商种类', providers, true],
  ['Inside', '内部（英文）', inside, true],
]

export const isEnglishOnly = (path: string) =>
  englishOnly.some((start) => path.slice(1).startsWith(start))

const chinesePath = (path: string) => (isEnglishOnly(path) ? path : `/zh${path}`)

const sidebarOf = (isChinese: boolean): DefaultTheme.SidebarItem[] =>
  groups.map(([english, chinese, entries, collapsed]) => ({
    text: isChinese ? chinese : english,
    ...(collapsed === undefined ? {} : { collapsed }),
    items: entries.map(([path, english, chinese]) =>
      isChinese ? { text: chinese, link: chinesePath(path) } : { text: english, link: path },
    ),
  }))

export const english = {
  themeConfig: {
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Limits', link: '/guides/limits' },
      { text: 'HTTP', link: '/http' },
      { text: 'Comparison', link: '/comparison' },
    ],
    sidebar: sidebarOf(false),
    notFound: {
      title: 'This page does not exist',
      quote: 'The address is wrong, or the page has moved. The search above finds it.',
      link: '/',
      linkText: 'To the first page',
    },
  } satisfies DefaultTheme.Config,
}

export const chinese = {
  description: '可自托管的验证码与通知服务：短信、邮件、电话、WhatsApp、Telegram，限额精确',
  themeConfig: {
    nav: [
      { text: '快速开始', link: '/zh/start' },
      { text: '限额', link: '/zh/guides/limits' },
      { text: 'HTTP', link: '/zh/http' },
      { text: '比较', link: '/zh/comparison' },
    ],
    sidebar: sidebarOf(true),
    notFound: {
      title: '没有这个页面',
      quote: '地址有误，或页面已移走。可以用上方的搜索查找。',
      link: '/zh/',
      linkText: '回到首页',
    },
    outline: { level: [2, 3] as [number, number], label: '本页目录' },
    docFooter: { prev: '上一页', next: '下一页' },
    sidebarMenuLabel: '目录',
    returnToTopLabel: '回到顶部',
    darkModeSwitchLabel: '深色模式',
    lightModeSwitchTitle: '切换到浅色模式',
    darkModeSwitchTitle: '切换到深色模式',
    langMenuLabel: '切换语言',
    skipToContentLabel: '跳到正文',
  } satisfies DefaultTheme.Config,
  search: {
    button: { buttonText: '搜索', buttonAriaLabel: '搜索' },
    modal: {
      displayDetails: '显示详细列表',
      resetButtonTitle: '清除',
      backButtonTitle: '关闭搜索',
      noResultsText: '没有找到：',
      footer: { selectText: '选择', navigateText: '切换', closeText: '关闭' },
    },
  },
}
