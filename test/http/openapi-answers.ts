import { expect } from 'vitest'
import { z } from 'zod'
import type { Postern, Reply } from '../support/postern.ts'

/** Checks answers against the document that the product itself serves. */
export async function openApiAnswers(postern: Postern) {
  const { body: document } = await postern.get('/openapi.json', { key: null })

  return {
    document,
    /** That `reply` is one that `operation` (`post /v1/captchas`) promises: status, type and shape. */
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
      const { schema } = response.content[type]
      const resolved = schema.$ref
        ? document.components.schemas[schema.$ref.split('/').at(-1)]
        : schema
      const parsed = z.fromJSONSchema(resolved).safeParse(reply.body)
      expect(parsed.error?.issues ?? []).toEqual([])
    },
  }
}
