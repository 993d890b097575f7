import { z } from 'zod';
import { httpUrl } from './http-url.ts';

/** The samplers of the OpenTelemetry specification that need no other service. */
export const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** With the names of the OpenTelemetry specification. docs/tracing.md lists further ones that its exporter reads itself. */
export const tracingSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl
    .optional()
    .describe('OTLP/HTTP collector of traces, without `/v1/traces`; no traces when not set'),
  OTEL_TRACES_SAMPLER: z
    .enum(SAMPLERS, `must be one of ${SAMPLERS.join(', ')}`)
    .default('parentbased_always_on')
    .describe(
      'Which messages are traced; with `parentbased_…` those whose `traceparent` says so, and the rest of the name for those without one',
    ),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number('must be a share from 0 to 1')
    .min(0, 'must be a share from 0 to 1')
    .max(1, 'must be a share from 0 to 1')
    .default(1)
    .describe('Share of traces for `traceidratio`'),
};

export type TracingSettings = z.infer<z.ZodObject<typeof tracingSettings>>;
