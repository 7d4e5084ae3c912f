/** The order of docs/ in the sidebar: the guide by task, the reference, and what is inside. */
import type { DefaultTheme } from 'vitepress'

type Entries = readonly (readonly [title: string, path: string])[]

const section = (text: string, entries: Entries, collapsed?: boolean) => ({
  text,
  ...(collapsed === undefined ? {} : { collapsed }),
  items: entries.map(([text, link]) => ({ text, link })),
})

const reference: Entries = [
  ['Concepts and glossary', '/concepts'],
  ['HTTP', '/http'],
  ['Calls and their fields', '/reference/calls'],
  ['Passes', '/passes'],
  ['Events', '/events'],
  ['Policy file', '/policy-file'],
  ['Environment', '/reference/environment'],
  ['PostgreSQL and Redis', '/servers'],
  ['Metrics', '/metrics'],
  ['Limiter', '/limiter'],
]

const providers: Entries = [
  'smtp',
  'aliyun',
  'tencent',
  'twilio',
  'smpp',
  'webhook',
  'sandbox',
].map((kind) => [kind, `/providers/${kind}`] as const)

const inside: Entries = [
  ['Performance', '/performance'],
  ['Invariants and faults', '/invariants'],
  ['Testing', '/testing'],
  ['Decisions', '/decisions/'],
  ['Comparison', '/comparison'],
]

const englishSidebar: DefaultTheme.SidebarItem[] = [
  section('Guide', [
    ['Start', '/start'],
    ['A sign-up page', '/guides/sign-up-page'],
    ['Code field', '/code-field'],
    ['Frameworks', '/code-field#frameworks'],
    ['Providers', '/guides/providers'],
    ['A provider of your own', '/guides/own-provider'],
    ['Go live: operations', '/operations'],
    ['Limits', '/guides/limits'],
    ['Against abuse', '/abuse'],
    ['Support', '/support'],
    ['Login lock', '/guides/login-lock'],
    ['Notices', '/guides/notices'],
    ['Inside an Express app', '/embedding'],
  ]),
  section('With other products', [
    ['Supabase Auth', '/guides/supabase'],
    ['Zitadel', '/guides/zitadel'],
    ['Logto', '/guides/logto'],
    ['better-auth', '/guides/better-auth'],
    ['Programs for CAMARA', '/guides/camara'],
    ['Programs for Twilio Verify', '/guides/twilio-verify'],
  ]),
  section('Reference', reference),
  section('Provider kinds', [['Overview', '/providers/'], ...providers], true),
  section('Inside', inside, true),
]

const chineseSidebar: DefaultTheme.SidebarItem[] = [
  section('指南', [
    ['快速开始', '/zh/start'],
    ['注册页', '/zh/guides/sign-up-page'],
    ['服务商', '/zh/guides/providers'],
    ['上线与运维', '/zh/guides/operations'],
    ['限额', '/zh/guides/limits'],
    ['防滥用', '/zh/guides/abuse'],
    ['登录锁定', '/zh/guides/login-lock'],
    ['通知', '/zh/guides/notices'],
    ['嵌入 Express 应用', '/zh/guides/embedding'],
    ['为 Twilio Verify 编写的程序', '/zh/guides/twilio-verify'],
    ['Supabase Auth', '/zh/guides/supabase'],
    ['Zitadel', '/zh/guides/zitadel'],
    ['Logto', '/zh/guides/logto'],
    ['better-auth', '/zh/guides/better-auth'],
    ['CAMARA 程序', '/zh/guides/camara'],
    ['概念与词汇', '/zh/concepts'],
  ]),
  section('参考（英文）', [['验证码输入框', '/code-field'], ['客服', '/support'], ...reference]),
  section('服务商种类（英文）', [['概览', '/providers/'], ...providers], true),
  section('内部（英文）', inside, true),
]

export const english = {
  themeConfig: {
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Concepts', link: '/concepts' },
      { text: 'HTTP', link: '/http' },
      { text: 'Comparison', link: '/comparison' },
    ],
    sidebar: englishSidebar,
  } satisfies DefaultTheme.Config,
}

export const chinese = {
  description: '可自托管的短信与邮件验证码、通知服务，限额精确',
  themeConfig: {
    nav: [
      { text: '快速开始', link: '/zh/start' },
      { text: '核心概念', link: '/zh/concepts' },
      { text: 'HTTP 参考', link: '/http' },
    ],
    sidebar: chineseSidebar,
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
