import { createServer } from 'node:http'
import { listen } from './listen.ts'

/** One received span, with its attributes as an object. */
export interface CollectedSpan {
  readonly service: string
  readonly name: string
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly attributes: Readonly<Record<string, unknown>>
  /** 2: an error. */
  readonly status: number | undefined
  readonly durationMs: number
}

export interface Collector {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string
  readonly spans: CollectedSpan[]
  /** All received data as text. */
  text(): string
}

/** The environment of a process that sends its spans to a collector, as docs/guides/traces.md sets it up. */
export function tracesEnv({ url }: Collector, service: string): Record<string, string> {
  return {
    NODE_OPTIONS: `--import ${new URL('../../examples/traces/traces.mjs', import.meta.url)}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_SERVICE_NAME: service,
  }
}

/** A receiver of OTLP over HTTP with JSON, which is what the exporter of the guide sends. */
export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = []
  let text = ''
  const server = createServer(async (incoming, response) => {
    let body = ''
    for await (const chunk of incoming.setEncoding('utf8')) body += chunk
    text += body
    spans.push(...spansIn(JSON.parse(body)))
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  const url = await listen(server)
  return { url, spans, text: () => text }
}

// biome-ignore lint/suspicious/noExplicitAny: the format is OpenTelemetry's
function spansIn({ resourceSpans }: any): CollectedSpan[] {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  return resourceSpans.flatMap(({ resource, scopeSpans }: any) =>
    // biome-ignore lint/suspicious/noExplicitAny: as above
    scopeSpans.flatMap(({ spans }: any) =>
      // biome-ignore lint/suspicious/noExplicitAny: as above
      spans.map((span: any) => ({
        ...span,
        service: attributesOf(resource)['service.name'],
        attributes: attributesOf(span),
        status: span.status?.code,
        durationMs: (Number(span.endTimeUnixNano) - Number(span.startTimeUnixNano)) / 1e6,
      })),
    ),
  )
}

const attributesOf = ({
  attributes,
}: {
  attributes: readonly { key: string; value: Record<string, unknown> }[]
}) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]] as const))
