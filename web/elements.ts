/** Creates and changes elements with as few writes as possible. */

export function add<Tag extends keyof HTMLElementTagNameMap>(
  parent: Element,
  tag: Tag,
  className: string,
  attributes: Readonly<Record<string, string>> = {},
) {
  const element = document.createElement(tag)
  if (className) element.className = className
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

/** Writes a text only if it has changed, because a screen reader repeats every text that is written. */
export function set(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text
}

/** Uses `aria-disabled`, because `disabled` would remove the focus from the pressed button. */
export const setEnabled = (button: Element, isEnabled: boolean) =>
  setAttributes(button, { 'aria-disabled': `${!isEnabled}` })
