/**
 * The first page of the site. It is followed by docs/README.md, GitHub's first page of docs/, with its tasks and
 * pages.
 */
import type { PageData } from 'vitepress'

interface Home {
  readonly title: string
  readonly hero: {
    readonly name: string
    readonly text: string
    readonly tagline: string
    readonly actions: readonly { theme: 'brand' | 'alt'; text: string; link: string }[]
  }
  /** The picture of the demo, and its button. */
  readonly picture: { readonly alt: string; readonly play: string; readonly stop: string }
  readonly features: readonly {
    title: string
    details: string
    link: string
    linkText: string
  }[]
}

const english: Home = {
  title: 'Postern',
  hero: {
    name: 'Postern',
    text: 'Sign-up codes by SMS and email, within exact limits',
    tagline: 'One tag on your page, one call on your server. You host it.',
    actions: [
      { theme: 'brand', text: 'Start in ten minutes', link: '/start' },
      { theme: 'alt', text: 'Compare', link: '/comparison' },
    ],
  },
  picture: {
    alt: 'The demo: a number is typed, the code arrives, and a second request is refused',
    play: 'Play',
    stop: 'Stop',
  },
  features: [
    {
      title: 'A code field for your page',
      details:
        'One HTML element of 16 kB. It sends the code, counts down, checks it and puts a signed pass into your form.',
      link: '/code-field',
      linkText: 'Code field',
    },
    {
      title: 'Exact limits',
      details:
        '“1 per 60s, 5 per 1h, 10 per 24h” means exactly that, over any number of processes. A refusal uses up nothing.',
      link: '/guides/limits',
      linkText: 'Limits',
    },
    {
      title: 'A console for support',
      details:
        'It answers “my code did not come”: sent, delivered, refused by which rule, or typed wrongly.',
      link: '/support',
      linkText: 'Support',
    },
  ],
}

const chinese: Home = {
  title: 'Postern',
  hero: {
    name: 'Postern',
    text: '短信和邮件验证码，限额精确',
    tagline: '页面上一个标签，服务器上一次调用。由你自己部署。',
    actions: [
      { theme: 'brand', text: '十分钟上手', link: '/zh/start' },
      { theme: 'alt', text: '与其他产品比较', link: '/zh/comparison' },
    ],
  },
  picture: {
    alt: '演示：输入手机号，收到验证码，第二次请求被拒绝',
    play: '播放',
    stop: '停止',
  },
  features: [
    {
      title: '现成的验证码输入框',
      details: '一个 16 kB 的 HTML 元素：发送、倒计时、校验，并把签名凭证放进表单。',
      link: '/zh/code-field',
      linkText: '验证码输入框',
    },
    {
      title: '精确的限额',
      details:
        '写了 1 per 60s, 5 per 1h, 10 per 24h，就一次不多，进程再多也一样。被拒绝不消耗配额。',
      link: '/zh/guides/limits',
      linkText: '限额',
    },
    {
      title: '客服控制台',
      details: '回答“收不到验证码”：已发送、已送达、被哪条规则拒绝，还是输错了。',
      link: '/zh/support',
      linkText: '客服',
    },
  ],
}

const homes: Readonly<Record<string, Home>> = { 'index.md': english, 'zh/index.md': chinese }

export function makeHome(page: PageData): void {
  const home = homes[page.relativePath]
  if (!home) return
  page.title = home.title
  page.frontmatter = { ...page.frontmatter, ...home, layout: 'home', titleTemplate: false }
}
