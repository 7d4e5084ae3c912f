import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { expect } from 'vitest'
import type { Postern, Reply } from '../tools/postern.ts'

/** Checks answers against the OpenAPI document that the product serves. */
export async function openApiAnswers(postern: Postern) {
  const { body: document } = await postern.get('/openapi.json', { key: null })
  const ajv = new Ajv2020({ strict: false, discriminator: false })
  addFormats.default(ajv)
  ajv.addSchema(document, 'openapi.json')

  return {
    document,
    /** Asserts that `operation` (`post /v1/captchas`) promises this reply: status, type and shape. */
    expectPromised(operation: string, reply: Reply): void {
      const [method, path] = operation.split(' ') as [string, string]
      const response = document.paths[path][method].responses[reply.status]
      expect(response, `${operation} promises no ${reply.status}`).toBeDefined()
      const types = Object.keys(response.content ?? {})
      const type = reply.headers.get('content-type')?.split(';')[0]
      expect(types).toEqual(type ? [type] : [])
      if (!type) {
        expect(reply.body).toBe('')
        return
      }
      const place = ['paths', path, method, 'responses', reply.status, 'content', type, 'schema']
      const pointer = place
        .map((part) => encodeURIComponent(String(part).replaceAll('~', '~0').replaceAll('/', '~1')))
        .join('/')
      const isPromised = ajv.validate({ $ref: `openapi.json#/${pointer}` }, reply.body)
      expect(isPromised ? [] : ajv.errors).toEqual([])
    },
  }
}
