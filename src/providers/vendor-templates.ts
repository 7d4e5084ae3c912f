import { z } from 'zod'
import type { Message } from './provider.ts'

/**
 * Carriers in China send nothing but texts they have approved, by the id of the text. So their
 * settings map our template and locale to theirs, and our variables to theirs.
 */
export function vendorTemplates<T extends z.ZodType>(entry: T) {
  return z.record(z.string().min(1), z.record(z.string().min(1), entry))
}

/** The entry for the message's template and locale, `zh-CN` falling back on `zh`. */
export function findVendorTemplate<T>(
  templates: Readonly<Record<string, Readonly<Record<string, T>>>>,
  message: Message,
): T | undefined {
  const locales = ownEntry(templates, message.template)
  if (!locales) return undefined
  return ownEntry(locales, message.locale) ?? ownEntry(locales, message.locale.split('-')[0] ?? '')
}

function ownEntry<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}
