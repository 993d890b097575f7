import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api';
import { ExportResultCode } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { Counter, type Registry } from 'prom-client';
import { withTimeout } from '../async/pause.ts';
import type { Logger } from './logger.ts';
import { startAtZero, VERSION } from './metrics.ts';
import type { ServiceContext } from './run-service.ts';
import type { TracingSettings } from './settings.ts';

/** The steps of the way of a message that are exported as spans. */
export type TracedStep = 'accept' | 'publish' | 'attempt' | 'settle';

/** Ids, numbers and closed words only: never a URL, a header or a payload, which may hold secrets. */
export type SpanAttributes = Readonly<Record<string, string | number | null | undefined>>;

export interface SpanStart {
  step: TracedStep;
  /** The span above, as a W3C `traceparent`. Undefined begins a trace, if the sampler wants one. */
  parent: string | undefined;
  /** Milliseconds since 1970. */
  startMs: number;
  attributes: SpanAttributes;
}

export interface SpanEnd {
  /** Milliseconds since 1970. */
  endMs: number;
  attributes?: SpanAttributes;
  /** Why the step failed, in a closed word; undefined when it succeeded. */
  failure?: string | undefined;
}

/** A span that is exported when it ends. */
export interface OpenSpan {
  /** Names this span as the one above of what follows. */
  traceparent: string;
  end: (end: SpanEnd) => void;
}

export interface Spans {
  /** Returns null when the trace is not sampled. Never throws. */
  begin: (start: SpanStart) => OpenSpan | null;
  /** Counts a span that was not made because too many are open. */
  countDropped: () => void;
}

const DELAY_MS = 1_000;
/** Spans have about 2 kB each. */
const MAX_QUEUED_SPANS = 8_192;
/** A collector that does not respond must not delay the stop of a process. */
const FLUSH_MS = 2_000;
/** While a collector is away, each batch fails. */
const WARN_EVERY_MS = 60_000;
const DROP_REASONS: readonly DropReason[] = ['queue_full', 'export_failed', 'too_many_open'];

/** Opens the export to a collector. Its further settings are read from the environment by the exporter (docs/tracing.md). */
export function openOtlpSpans(
  service: string,
  endpoint: string,
  {
    config,
    logger,
    lifecycle,
    registry,
  }: Pick<ServiceContext<TracingSettings>, 'config' | 'logger' | 'lifecycle' | 'registry'>,
): Spans {
  const dropped = createDroppedSpans(registry);
  const warn = createRareWarning(logger);
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': service,
      'service.version': VERSION,
    }).merge(
      detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] }),
    ),
    sampler: samplerOf(config),
    spanProcessors: [
      createBoundedExport(exporter, {
        maxQueuedSpans: MAX_QUEUED_SPANS,
        delayMs: DELAY_MS,
        onDropped(reason, spans, error) {
          dropped.inc({ reason }, spans);
          if (error) warn(error);
        },
      }),
    ],
  });
  lifecycle.onStop('spans', () =>
    withTimeout(provider.shutdown(), FLUSH_MS).catch(() => undefined),
  );
  return createOtlpSpans(provider.getTracer('posthorn', VERSION), () => {
    dropped.inc({ reason: 'too_many_open' });
  });
}

/** Counts the spans that were not exported. */
export function createDroppedSpans(registry: Registry): Counter<'reason'> {
  const dropped = new Counter({
    name: 'posthorn_spans_dropped_total',
    help: 'Spans that were not exported, by reason.',
    labelNames: ['reason'],
    registers: [registry],
  });
  startAtZero(dropped, 'reason', DROP_REASONS);
  return dropped;
}

function createRareWarning(logger: Logger): (error: Error) => void {
  let warnedAtMs = -Infinity;
  return (error) => {
    const nowMs = performance.now();
    if (nowMs - warnedAtMs < WARN_EVERY_MS) return;
    warnedAtMs = nowMs;
    logger.warn({ err: error }, 'spans cannot be exported, deliveries go on');
  };
}

function samplerOf({
  OTEL_TRACES_SAMPLER: name,
  OTEL_TRACES_SAMPLER_ARG: share,
}: TracingSettings): Sampler {
  switch (name) {
    case 'always_on':
      return new AlwaysOnSampler();
    case 'always_off':
      return new AlwaysOffSampler();
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(share);
    case 'parentbased_always_on':
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) });
  }
}

/** Why spans were not exported. */
export type DropReason = 'queue_full' | 'export_failed' | 'too_many_open';

export interface BoundedExportOptions {
  maxQueuedSpans: number;
  /** How long a span waits for others at most. */
  delayMs: number;
  onDropped: (reason: DropReason, spans: number, error?: Error) => void;
}

/**
 * Batches spans, and counts what is dropped: the processor of the SDK silently drops what its queue cannot take, and
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

const KINDS: Readonly<Record<TracedStep, SpanKind>> = {
  accept: SpanKind.SERVER,
  publish: SpanKind.PRODUCER,
  attempt: SpanKind.CLIENT,
  settle: SpanKind.INTERNAL,
};

/** Spans of a tracer of the OpenTelemetry SDK. */
export function createOtlpSpans(tracer: Tracer, countDropped: () => void): Spans {
  return {
    countDropped,
    begin({ step, parent, startMs, attributes }) {
      const options = { kind: KINDS[step], startTime: startMs, attributes: present(attributes) };
      const span = tracer.startSpan(step, options, contextOf(parent));
      return span.isRecording() ? openSpan(span) : null;
    },
  };
}

function openSpan(span: Span): OpenSpan {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return {
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
    end({ endMs, attributes, failure }) {
      if (attributes) span.setAttributes(present(attributes));
      if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure });
      span.end(endMs);
    },
  };
}

/** The parent is well formed: it was read with `traceparentOf`, or written here. */
function contextOf(parent: string | undefined): Context {
  if (parent === undefined) return ROOT_CONTEXT;
  const [, traceId = '', spanId = '', flags = ''] = parent.split('-');
  const traceFlags = parseInt(flags, 16) & TraceFlags.SAMPLED;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

function present(attributes: SpanAttributes): Attributes {
  const set: Attributes = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) set[name] = value;
  }
  return set;
}
