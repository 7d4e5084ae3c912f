import { createServer } from 'node:http'
import { listen } from './listen.ts'

/**
 * A server like Turnstile's and hCaptcha's, by their documentation. It takes a form with `secret` and `response`, and
 * answers with `success` and `error-codes`. A token is valid once. Tokens that begin with `good` are right.
 */
export interface Siteverify {
  readonly url: string
  readonly forms: URLSearchParams[]
  /** In place of its usual answer: a body with a status, or `hang` or `reset`. */
  behave: { status: number; body: string } | 'hang' | 'reset' | undefined
}

export async function startSiteverify(secret: string): Promise<Siteverify> {
  const seen = new Set<string>()
  const far: Omit<Siteverify, 'url'> = { forms: [], behave: undefined }

  function answerTo(form: URLSearchParams): string[] {
    if (!form.get('secret')) return ['missing-input-secret']
    if (form.get('secret') !== secret) return ['invalid-input-secret']
    const token = form.get('response') ?? ''
    if (!token) return ['missing-input-response']
    if (!token.startsWith('good')) return ['invalid-input-response']
    if (seen.has(token)) return ['timeout-or-duplicate']
    seen.add(token)
    return []
  }

  function ownAnswer(contentType: string | undefined, form: URLSearchParams) {
    const isForm = contentType === 'application/x-www-form-urlencoded'
    const codes = isForm ? answerTo(form) : ['bad-request']
    const said = { success: codes.length === 0, 'error-codes': codes, hostname: 'shop.example' }
    return { status: 200, body: JSON.stringify(said) }
  }

  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.once('end', () => {
      const form = new URLSearchParams(Buffer.concat(chunks).toString())
      far.forms.push(form)
      if (far.behave === 'hang') return
      if (far.behave === 'reset') return void incoming.socket.resetAndDestroy()
      const { status, body } = far.behave ?? ownAnswer(incoming.headers['content-type'], form)
      response.writeHead(status, { 'content-type': 'application/json' }).end(body)
    })
  })
  const url = `${await listen(server)}/siteverify`
  return Object.assign(far, { url })
}
