import { z } from 'zod'
import { ownEntry } from '../base/json.ts'
import { nearestOfScript } from '../base/nearest-locale.ts'
import type { Message } from './provider.ts'

/**
 * Carriers in China only send approved texts, by their ids. So the settings map template, locale and variables of Postern
 * to ids and variables of the vendor.
 */
export function vendorTemplates<T extends z.ZodType>(entry: T) {
  return z.record(z.string().min(1), z.record(z.string().min(1), entry))
}

/**
 * The entry for the template and locale of the message, or for the nearest locale in the same script: `zh` for `zh-CN`, but
 * not for `zh-TW`.
 */
export function findVendorTemplate<T>(
  templates: Readonly<Record<string, Readonly<Record<string, T>>>>,
  message: Message,
): T | undefined {
  const locales = ownEntry(templates, message.template)
  if (!locales) return undefined
  const exact = ownEntry(locales, message.locale)
  if (exact !== undefined) return exact
  const nearest = nearestOfScript(message.locale, Object.keys(locales))
  return nearest === undefined ? undefined : locales[nearest]
}
