-- The span that made the row, as W3C's header `traceparent`; null if it is not sampled.
ALTER TABLE "notice" ADD COLUMN "trace_parent" TEXT;

-- The span that caused the event.
ALTER TABLE "event" ADD COLUMN "trace_parent" TEXT;
