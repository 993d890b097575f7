import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import {
  AlwaysOnSampler,
  InMemorySpanExporter,
  ParentBasedSampler,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { beforeEach, expect, it } from '@jest/globals';
import { createOtlpSpans } from './otlp-spans.ts';
import type { Spans } from './spans.ts';

const TRACE_ID = 'a'.repeat(32);
const SPAN_ID = 'b'.repeat(16);

let exporter: InMemorySpanExporter;
let spans: Spans;

beforeEach(() => {
  exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  });
  spans = createOtlpSpans(provider.getTracer('test'), () => undefined);
});

it('joins the trace of its parent, with times, kind, attributes and failure', () => {
  const span = spans.begin({
    step: 'attempt',
    parent: `00-${TRACE_ID}-${SPAN_ID}-01`,
    startMs: 1_700_000_000_000,
    attributes: { 'posthorn.webhook.id': 'wh_1', 'posthorn.app.id': null },
  });
  span?.end({
    endMs: 1_700_000_000_250,
    attributes: { 'http.response.status_code': 500 },
    failure: 'http_5xx',
  });
  const [ended] = exporter.getFinishedSpans();
  expect(ended).toMatchObject({
    name: 'attempt',
    kind: SpanKind.CLIENT,
    parentSpanContext: { traceId: TRACE_ID, spanId: SPAN_ID },
    startTime: [1_700_000_000, 0],
    endTime: [1_700_000_000, 250_000_000],
    attributes: { 'posthorn.webhook.id': 'wh_1', 'http.response.status_code': 500 },
    status: { code: SpanStatusCode.ERROR, message: 'http_5xx' },
  });
  expect(span?.traceparent).toBe(`00-${TRACE_ID}-${ended?.spanContext().spanId ?? ''}-01`);
  expect(ended?.attributes).not.toHaveProperty('posthorn.app.id');
});

it('begins a trace without a parent', () => {
  const span = spans.begin({ step: 'accept', parent: undefined, startMs: 1, attributes: {} });
  expect(span?.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
});

it('makes no span below a parent that is not sampled', () => {
  const parent = `00-${TRACE_ID}-${SPAN_ID}-00`;
  expect(spans.begin({ step: 'attempt', parent, startMs: 1, attributes: {} })).toBeNull();
});
