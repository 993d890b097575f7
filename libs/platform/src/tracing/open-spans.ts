import type { ServiceContext } from '../service/run-service.ts';
import type { TracingSettings } from '../service/settings/tracing-settings.ts';
import type { Spans } from './spans.ts';

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
  const { openOtlpSpans } = await import('./open-otlp-spans.ts');
  return openOtlpSpans(service, endpoint, context);
}
