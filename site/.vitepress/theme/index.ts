import { Content, type Theme, useData, withBase } from 'vitepress'
import DefaultTheme, {
  VPHomeContent,
  VPHomeFeatures,
  VPHomeHero,
} from 'vitepress/theme-without-fonts'
import { h } from 'vue'
import '../../../web/brand/brand.css'
import './style.css'

/** The demo, moving, below the words of the first page. The style sheet shows the one of the reader's light. */
function DemoPicture() {
  const { frontmatter, localeIndex } = useData()
  const name = localeIndex.value === 'zh' ? 'demo-zh' : 'demo'
  const alt = frontmatter.value.picture
  return h(
    'p',
    { class: 'demo' },
    ['light', 'dark'].map((scheme) =>
      h('img', {
        class: scheme,
        src: withBase(`/${name}-${scheme}.webp`),
        ...{ alt, width: 1280, height: 780, loading: 'lazy' },
      }),
    ),
  )
}

/** VitePress' own has no main landmark. */
const Home = () =>
  h('main', { class: 'home' }, [
    h(VPHomeHero),
    h(DemoPicture),
    h(VPHomeFeatures),
    h(VPHomeContent, null, () => h(Content)),
  ])

export default {
  ...DefaultTheme,
  enhanceApp(context) {
    DefaultTheme.enhanceApp?.(context)
    context.app.component('home', Home)
  },
} satisfies Theme
