/** Elements by hand, so that what did not change stays the element it was. */
export const byId = <Kind extends HTMLElement = HTMLElement>(id: string) =>
  document.getElementById(id) as Kind

export function make(tag: string, className = '', content: string | Node[] = ''): HTMLElement {
  const element = document.createElement(tag)
  if (className) element.className = className
  if (typeof content === 'string') element.textContent = content
  else element.append(...content)
  return element
}

/** A screen reader says a message again that is written again. */
export function setText(element: Element | null, words: string): void {
  if (element && element.textContent !== words) element.textContent = words
}

export function setAttributes(element: Element, values: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(values)) {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value)
  }
}

/**
 * Makes `list` show `items`, in their order: each by a key that stays its own, made once and then only updated.
 * `empty` stands there while there is none.
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
