/** Elements, made and changed with as little writing as there is to do. */

export function make<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, className: string) {
  const element = document.createElement(tag)
  if (className) element.className = className
  return element
}

export function add<Tag extends keyof HTMLElementTagNameMap>(
  parent: Element,
  tag: Tag,
  className: string,
  attributes: Readonly<Record<string, string>> = {},
) {
  const element = make(tag, className)
  setAttributes(element, attributes)
  parent.append(element)
  return element
}

export function setAttributes(
  element: Element,
  attributes: Readonly<Record<string, string>>,
): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value)
  }
}

/** Only what changed: a screen reader says a message again that is written again. */
export function set(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

/** Not `disabled`: that would take the focus from the person who just pressed it. */
export const setEnabled = (button: Element, isEnabled: boolean) =>
  setAttributes(button, { 'aria-disabled': String(!isEnabled) })
