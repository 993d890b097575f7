import { ExportResultCode } from '@opentelemetry/core';
import {
  BatchSpanProcessor,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace';

/** Why spans were not exported. */
export type DropReason = 'queue_full' | 'export_failed' | 'too_many_open';

export interface BoundedExportOptions {
  maxQueuedSpans: number;
  /** How long a span waits for others at most. */
  delayMs: number;
  onDropped: (reason: DropReason, spans: number, error?: Error) => void;
}

/**
 * Batches spans, and counts what is dropped: the processor of the SDK drops what its queue cannot take without telling, and
 * forgets a batch that could not be exported. No caller waits for an export.
 */
export function createBoundedExport(
  exporter: SpanExporter,
  { maxQueuedSpans, delayMs, onDropped }: BoundedExportOptions,
): SpanProcessor {
  let queued = 0;
  const counted: SpanExporter = {
    export(spans, done) {
      queued -= spans.length;
      exporter.export(spans, (result) => {
        if (result.code !== ExportResultCode.SUCCESS) {
          onDropped('export_failed', spans.length, result.error);
        }
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
  const batches = new BatchSpanProcessor({
    exporter: counted,
    maxQueueSize: maxQueuedSpans,
    scheduledDelayMillis: delayMs,
  });
  return {
    onStart: () => undefined,
    onEnd(span) {
      if (queued >= maxQueuedSpans) {
        onDropped('queue_full', 1);
        return;
      }
      queued += 1;
      batches.onEnd(span);
    },
    forceFlush: () => batches.forceFlush(),
    shutdown: () => batches.shutdown(),
  };
}
