// Loads the SDK of OpenTelemetry before Postern: NODE_OPTIONS='--import ./traces.mjs'.
// OTEL_EXPORTER_OTLP_ENDPOINT is the collector, http://localhost:4318 if absent.
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'

const { OTEL_SERVICE_NAME = 'postern', TRACES_SHARE = '1' } = process.env

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
trace.setGlobalTracerProvider(
  new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': OTEL_SERVICE_NAME }),
    // The share of traces that are kept, if they begin here. A caller with a secret key decides for its own.
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(Number(TRACES_SHARE)) }),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  }),
)
