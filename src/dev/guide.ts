/**
 * The documentation site, which only the demo serves, at /docs/guide/. Only a clone can build it. The site may be built while
 * the demo runs, so every request reads the current files. While there is no site, a page shows that and reloads itself.
 *
 * Every built page contains the same two small scripts (light or dark before the first paint). The
 * Content-Security-Policy names their hashes, so that no other inline script can run. Code is coloured by style
 * attributes.
 */
import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import express, {
  type ErrorRequestHandler,
  type Request,
  type RequestHandler,
  type Response,
  type Router,
} from 'express'
import helmet from 'helmet'
import { commandLine, isInstalled } from '../base/command-line.ts'
import { brandedStyle } from '../base/own-pages.ts'
import { readIfThere } from './server-process.ts'

export const guidePath = '/docs/guide/'
const builtSite = fileURLToPath(new URL('../../site/dist', import.meta.url))

export interface Guide {
  readonly folder?: string
  /** Whether a missing site is being built. */
  readonly isBeingBuilt?: () => boolean
}

export function createGuide(guide: Guide = {}): Router {
  const { folder = builtSite, isBeingBuilt = () => false } = guide
  const protect = headersOf(join(folder, 'index.html'))
  const router = express.Router()
  router.use((request, response, next) => protect()(request, response, next))
  router.use(packed(folder), express.static(folder, { extensions: ['html'] }))
  router.use((_: Request, response: Response) => {
    const missing = readIfThere(join(folder, '404.html'))
    if (missing !== '') response.status(404).send(missing)
    else if (isBeingBuilt()) response.status(503).set('Retry-After', '2').send(beingBuilt)
    else response.status(404).send(isInstalled ? notInPackage : notBuilt)
  })
  router.use(notAPath)
  return express.Router().use(guidePath, router)
}

/** Sends the compressed file that the build wrote beside a text, to browsers that accept it. */
function packed(folder: string): RequestHandler {
  const send = express.static(folder, {
    index: 'index.html.gz',
    extensions: ['html.gz'],
    setHeaders: (response, file) =>
      response.type(extname(file.slice(0, -'.gz'.length))).set('Content-Encoding', 'gzip'),
  })
  return (request, response, next) => {
    response.vary('Accept-Encoding')
    const extension = extname(request.path)
    const isText = ['', '.css', '.html', '.js', '.svg'].includes(extension)
    if (!isText || request.acceptsEncodings('gzip') !== 'gzip') return next()
    const { url } = request
    request.url = extension ? `${request.path}.gz` : request.path
    send(request, response, (error) => {
      request.url = url
      next(error)
    })
  }
}

/** The headers of the current site. They are made again only when the start page changes. */
function headersOf(startPage: string): () => RequestHandler {
  let made: { of: number; headers: RequestHandler } | undefined
  return () => {
    const of = statSync(startPage, { throwIfNoEntry: false })?.mtimeMs ?? 0
    if (made?.of !== of) made = { of, headers: helmetFor(readIfThere(startPage)) }
    return made.headers
  }
}

const helmetFor = (startPage: string): RequestHandler =>
  helmet({
    contentSecurityPolicy: {
      directives: {
        scriptSrc: ["'self'", ...inlineScripts(startPage).map(sourceOf)],
        styleSrc: ["'self'", "'unsafe-inline'"],
        upgradeInsecureRequests: null,
      },
    },
    strictTransportSecurity: false,
  })

/** Answers paths that are not valid text. The answer of Express would contain file paths of this machine. */
const notAPath: ErrorRequestHandler = (error, _request, response, next) => {
  if (!(error instanceof URIError)) return next(error)
  response.status(400).type('text').send('This is not a valid address.\n')
}

const inlineScripts = (html: string) =>
  html
    .split('<script')
    .slice(1)
    .filter((part) => !part.slice(0, part.indexOf('>')).includes(' src='))
    .map((part) => part.slice(part.indexOf('>') + 1, part.indexOf('</script>')))

const sourceOf = (script: string) =>
  `'sha256-${createHash('sha256').update(script).digest('base64')}'`

const page = (title: string, head: string, words: string) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${head}<title>Postern: ${title}</title>
<link rel="icon" href="/demo/postern.svg">
<style>${brandedStyle()}</style>
<header class="top"><a class="brand" href="/"><img src="/demo/postern.svg" width="28" height="28" alt="">Postern</a></header>
<main>
<h1>${title}</h1>
${words}
</main>
</html>
`

const elsewhere = (
  folder: string,
) => `Its pages are plain files too, in <code>${folder}</code>. The calls of the API
are <a href="/docs">here</a>.`

const beingBuilt = page(
  'The guide is being built',
  '<meta http-equiv="refresh" content="2">\n',
  `<p>That takes some seconds, once. This page then becomes the guide by itself. ${elsewhere('docs/')}</p>
<p lang="zh">文档正在生成，只需几秒，完成后本页会自动显示。</p>`,
)

const notBuilt = page(
  'The guide is not built',
  '',
  `<p>Run <code>npm run docs</code> in the folder of Postern and load this page again. ${elsewhere('docs/')}</p>
<p lang="zh">文档尚未生成：在 Postern 目录里运行 <code>npm run docs</code>，然后刷新本页。</p>`,
)

const keyCommand = `DATABASE_URL=$(cat .postern/database-url) ${commandLine(
  'keys',
  'create --kind publishable --name my-page --app default --origin http://localhost:8080',
)}`

const notInPackage = page(
  'The guide is not in the package',
  '',
  `<p>${elsewhere('node_modules/postern/docs/')}
<a href="https://github.com/postern/postern/tree/main/docs">The repository</a> has them too.</p>
<p>To make a key for your page, run this in the folder of the demo, with the origin of your page:</p>
<pre class="scroll"><code>${keyCommand}</code></pre>
<p lang="zh">安装包里没有文档网站。文档在 <code>node_modules/postern/docs/zh/</code>，也在<a
href="https://github.com/postern/postern/tree/main/docs/zh">仓库</a>里。为页面创建密钥：在演示的目录里运行上面的命令，来源换成您页面的。</p>`,
)
