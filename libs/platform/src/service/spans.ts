import type { ServiceContext } from './run-service.ts';
import type { TracingSettings } from './settings.ts';
import type { Spans } from './otlp-spans.ts';

export type {
  OpenSpan,
  SpanAttributes,
  SpanEnd,
  Spans,
  SpanStart,
  TracedStep,
} from './otlp-spans.ts';

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
