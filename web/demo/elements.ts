/** Updates elements in place, so that unchanged elements stay in the page. */
import { set } from '../elements.ts'

export { setAttributes } from '../elements.ts'

export const byId = <Kind extends HTMLElement = HTMLElement>(id: string) =>
  document.getElementById(id) as Kind

export function make(tag: string, className = '', content: string | Node[] = ''): HTMLElement {
  const element = document.createElement(tag)
  if (className) element.className = className
  if (typeof content === 'string') element.textContent = content
  else element.append(...content)
  return element
}

/** A short movement, for visitors who want movements. */
export function nudge(element: Element, frames: PropertyIndexedKeyframes): void {
  if (!isCalm) element.animate(frames, 400)
}
export const isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches

export const setText = (element: Element | null, words: string) => element && set(element, words)

/**
 * Makes `list` show `items` in their order. An item is found by its key, created once and then updated. `empty` is shown
 * while there are no items.
 */
export function drawList<Item>(
  list: HTMLElement,
  items: readonly Item[],
  keyOf: (item: Item) => string,
  build: (item: Item) => HTMLElement,
  update: (element: HTMLElement, item: Item) => void = () => {},
  empty = '',
): void {
  const before = new Map(
    [...list.children].map((child) => [(child as HTMLElement).dataset.key, child]),
  )
  const wanted = items.map((item) => {
    const key = keyOf(item)
    const element = (before.get(key) as HTMLElement | undefined) ?? build(item)
    element.dataset.key = key
    update(element, item)
    return element
  })
  if (wanted.length === 0 && empty) {
    const note = (before.get('empty') as HTMLElement | undefined) ?? make('li', 'empty')
    note.dataset.key = 'empty'
    setText(note, empty)
    wanted.push(note)
  }
  for (const child of [...list.children]) if (!wanted.includes(child as HTMLElement)) child.remove()
  wanted.forEach((element, index) => {
    if (list.children[index] !== element) list.insertBefore(element, list.children[index] ?? null)
  })
}
