/** OpenAPI documents of other people: their schemas for JSON Schema, and a validator of answers. */
import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { parse } from 'yaml'

// biome-ignore lint/suspicious/noExplicitAny: the document is what tests read
export type ForeignDocument = any

export function openForeignDocument(path: string) {
  // YAML contains JSON.
  const document: ForeignDocument = parse(readFileSync(path, 'utf8'), nullableToType)
  const ajv = new Ajv({ strict: false })
  addFormats.default(ajv)
  ajv.addFormat('iso-country-code', true)
  ajv.addFormat('int32', true)
  ajv.addSchema(document, 'document')

  /** The part of the document at a pointer such as `#/components/schemas/x`, through references on the way. */
  function resolve(pointer: string): ForeignDocument {
    let part = document
    for (const name of pointer.split('/').slice(1)) {
      part = followed(part)[decodeURIComponent(name).replaceAll('~1', '/').replaceAll('~0', '~')]
    }
    return followed(part)
  }
  const followed = (part: ForeignDocument): ForeignDocument =>
    part?.$ref ? resolve(part.$ref) : part

  return {
    document,
    resolve,
    /** The faults of a value; undefined for a valid one. `schema` is part of the document. */
    mistakesOf(schema: object, value: unknown): string | undefined {
      const absolute = JSON.parse(
        JSON.stringify(schema).replaceAll('"$ref":"#', '"$ref":"document#'),
      )
      return ajv.validate(absolute, value) ? undefined : JSON.stringify(ajv.errors)
    },
  }
}

/** OpenAPI 3.0 writes `nullable: true`; JSON Schema lists the type null. */
function nullableToType(_: unknown, value: unknown) {
  const { nullable, type, ...rest } = (value ?? {}) as { nullable?: boolean; type?: string }
  if (nullable !== true) return value
  return type === undefined ? rest : { ...rest, type: [type, 'null'] }
}
