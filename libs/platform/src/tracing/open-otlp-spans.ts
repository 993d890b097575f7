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
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
} from '@opentelemetry/sdk-trace';
import { Counter, type Registry } from 'prom-client';
import { withTimeout } from '../async/with-timeout.ts';
import type { Logger } from '../service/logger.ts';
import { startAtZero, VERSION } from '../service/metrics.ts';
import type { ServiceContext } from '../service/run-service.ts';
import type { TracingSettings } from '../service/settings/tracing-settings.ts';
import { createBoundedExport, type DropReason } from './bounded-export.ts';
import { createOtlpSpans } from './otlp-spans.ts';
import type { Spans } from './spans.ts';

const DELAY_MS = 1_000;
/** Of about 2 kB each. */
const MAX_QUEUED_SPANS = 8_192;
/** A collector that does not answer must not delay the stop of a process. */
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
