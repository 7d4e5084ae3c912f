/** What a reader has around a block of code that a page shows: names, with their types. */
import type { Fence } from '../tools/markdown.ts'

const around: Readonly<Record<string, string>> = {
  'README.md': `
declare const redis: import('ioredis').Redis
declare const app: import('express').Express
declare const handler: import('express').RequestHandler`,
  'docs/code-field.md': `
declare function save(pass: string): void
type Passed = { addEventListener(type: 'passed', on: (event: CustomEvent<{ pass: string }>) => void): void }
declare const document: { querySelector(name: 'postern-code'): Passed & import('postern/browser').PosternCode }
declare const to: string
declare function start(resendAt: string): void
declare function wait(ms: number): void`,
  'docs/limiter.md': `
declare const policies: import('postern-limiter').RawPolicies
declare const redis: import('ioredis').Redis
declare const ip: string
declare const app: import('express').Express
declare const handler: import('express').RequestHandler
declare function sendMail(to: string): Promise<void>`,
  'docs/passes.md': `
declare const pass: string
declare function rememberOnce(id: unknown, expiresAt: unknown): Promise<boolean>`,
  'docs/guides/login-lock.md': `
declare function isRight(user: string, password: string): Promise<boolean>`,
}

export const typesOf = ({ page }: Fence): string => around[page.replace('docs/zh/', 'docs/')] ?? ''
