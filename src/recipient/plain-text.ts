/**
 * A recipient as it was copied: contacts, chats and pages add invisible characters, spaces at the ends, and the scheme of
 * a link. None of them belongs to a number or address.
 */
export function plainText(text: string, scheme: 'tel' | 'mailto'): string {
  const visible = text.replaceAll(/[\p{Cf}\p{Variation_Selector}]/gu, '').trim()
  return visible.toLowerCase().startsWith(`${scheme}:`) ? visible.slice(scheme.length + 1) : visible
}
