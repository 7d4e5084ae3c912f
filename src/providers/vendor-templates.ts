import { z } from 'zod'
import { ownEntry } from '../base/json.ts'
import { nearestOfScript, nearestOrDefault } from '../base/nearest-locale.ts'
import type { Message } from './provider.ts'

/**
 * Carriers in China only send approved texts, by their ids. So the settings map template, locale and variables of Postern
 * to ids and variables of the vendor.
 */
export function vendorTemplates<T extends z.ZodType>(entry: T) {
  return z.record(z.string().min(1), z.record(z.string().min(1), entry))
}

type Templates<T> = Readonly<Record<string, Readonly<Record<string, T>>>>

/** The entry for the template, in the locale of the message, the nearest one, or the default. */
export function findTemplateInAnyLocale<T>(
  templates: Templates<T>,
  message: Message,
): T | undefined {
  const locales = ownEntry(templates, message.template) ?? {}
  const found = nearestOrDefault(message.locale, Object.keys(locales))
  return found === undefined ? undefined : locales[found]
}

/**
 * The entry for the template and locale of the message, or for the nearest locale in the same script: `zh` for `zh-CN`, but
 * not for `zh-TW`.
 */
export function findVendorTemplate<T>(templates: Templates<T>, message: Message): T | undefined {
  const locales = ownEntry(templates, message.template)
  if (!locales) return undefined
  const exact = ownEntry(locales, message.locale)
  if (exact !== undefined) return exact
  const nearest = nearestOfScript(message.locale, Object.keys(locales))
  return nearest === undefined ? undefined : locales[nearest]
}
