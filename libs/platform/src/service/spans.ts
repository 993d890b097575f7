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

/**
 * Returns null when no collector is set, and then loads nothing of the SDK of OpenTelemetry. The step that flushes spans is
 * registered here, so open them before what makes spans.
 */
export async function openSpans(
  service: string,
  context: Pick<ServiceContext<TracingSettings>, 'config' | 'logger' | 'lifecycle' | 'registry'>,
): Promise<Spans | null> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = context.config;
  if (endpoint === undefined) return null;
  const { openOtlpSpans } = await import('./otlp-spans.ts');
  return openOtlpSpans(service, endpoint, context);
}
