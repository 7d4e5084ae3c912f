import { Content, type Theme, useData, withBase } from 'vitepress'
import DefaultTheme, {
  VPHomeContent,
  VPHomeFeatures,
  VPHomeHero,
} from 'vitepress/theme-without-fonts'
import { defineComponent, h, onMounted, onUnmounted, ref } from 'vue'
import '../../../web/brand/brand.css'
import './style.css'

/**
 * The demo below the text of the first page: a still picture, and a moving one that is ten times as large. The moving
 * one is loaded when the still one is complete and mostly in view. It lies over the still one, which stays visible
 * until the moving one is decoded. For a reader who wants no motion or little data, only the button starts it. The
 * button also ends it. The style sheet shows the picture of the reader's colour scheme.
 */
const DemoPicture = defineComponent(() => {
  const { frontmatter, localeIndex } = useData()
  const picture = ref<HTMLElement>()
  const isMoving = ref(false)
  let inView: IntersectionObserver | undefined
  const stopWatching = () => inView?.disconnect()
  onMounted(() => {
    if (wantsNoMotion()) return
    for (const image of picture.value?.querySelectorAll('img') ?? []) {
      if (image.complete && image.naturalWidth > 0) watch()
      else image.addEventListener('load', watch, { once: true })
    }
  })
  onUnmounted(stopWatching)

  function watch(): void {
    if (inView || !picture.value) return
    const atThisPart = { threshold: 0.75 }
    inView = new IntersectionObserver((seen) => {
      if (seen.some(({ isIntersecting }) => isIntersecting)) move(true)
    }, atThisPart)
    inView.observe(picture.value)
  }

  function move(isMovingNow: boolean): void {
    isMoving.value = isMovingNow
    stopWatching()
  }

  return () => {
    const name = localeIndex.value === 'zh' ? 'demo-zh' : 'demo'
    const { alt, play, stop } = frontmatter.value.picture
    const imagesOf = (end: '-still.webp' | '.webp', facts: Record<string, string>) =>
      ['light', 'dark'].map((scheme) =>
        h('img', {
          // Before `src`, because then an image that is not shown is not loaded.
          loading: 'lazy',
          class: [scheme, end === '.webp' && 'moving'],
          src: withBase(`/${name}-${scheme}${end}`),
          ...{ width: 1280, height: 780, ...facts },
        }),
      )
    const still = imagesOf('-still.webp', { alt })
    const moving = isMoving.value ? imagesOf('.webp', { alt: '' }) : []
    const button = h(
      'button',
      { type: 'button', class: isMoving.value && 'stop', onClick: () => move(!isMoving.value) },
      isMoving.value ? stop : play,
    )
    return h('div', { class: 'demo' }, h('div', { ref: picture }, [...still, ...moving, button]))
  }
})

function wantsNoMotion(): boolean {
  const { connection } = navigator as Navigator & { connection?: { saveData: boolean } }
  return matchMedia('(prefers-reduced-motion: reduce)').matches || connection?.saveData === true
}

/** VitePress' page has no main landmark. */
const Home = () =>
  h('main', { class: 'home' }, [
    h(VPHomeHero),
    h(DemoPicture),
    h(VPHomeFeatures),
    h(VPHomeContent, null, () => h(Content)),
  ])

/** VitePress' page has no main landmark, and has a link whose name is not its text. */
function NotFound() {
  const { title, quote, link = '/', linkText } = useData().theme.value.notFound ?? {}
  return h('main', { class: 'missing vp-doc' }, [
    h('h1', title),
    h('p', quote),
    h('p', h('a', { href: withBase(link) }, linkText)),
  ])
}

/**
 * VitePress' search is a button around everything, with links in options whose names are not their texts. Here it is
 * a dialog with a list of links, and its keys are pictures.
 */
function mendSearch(): void {
  const box = document.querySelector('.VPLocalSearchBox')
  if (!box) return
  const drop = (element: Element, ...names: string[]) => {
    for (const name of names) element.removeAttribute(name)
  }
  if (box.role !== 'dialog') box.role = 'dialog'
  drop(box, 'aria-expanded', 'aria-haspopup')
  for (const option of box.querySelectorAll('[role=option], [aria-selected]')) {
    const link = option.querySelector('a')
    if (link) link.ariaCurrent = option.ariaSelected
    drop(option, 'role', 'aria-selected')
  }
  for (const link of box.querySelectorAll('a[aria-label]')) drop(link, 'aria-label')
  for (const list of box.querySelectorAll('[role=listbox]')) drop(list, 'role')
  for (const key of box.querySelectorAll('kbd[aria-label]:not([role])')) key.role = 'img'
}

export default {
  ...DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'not-found': () => h(NotFound) }),
  enhanceApp(context) {
    DefaultTheme.enhanceApp?.(context)
    context.app.component('home', Home)
    if (typeof document === 'undefined') return
    new MutationObserver(mendSearch).observe(document, {
      ...{ childList: true, subtree: true },
      attributeFilter: ['role', 'aria-selected', 'aria-label'],
    })
  },
} satisfies Theme
