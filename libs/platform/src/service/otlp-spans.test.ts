import { beforeEach, describe, expect, it } from '@jest/globals';
import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import {
  AlwaysOnSampler,
  InMemorySpanExporter,
  ParentBasedSampler,
  type ReadableSpan,
  SimpleSpanProcessor,
  type SpanExporter,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { createBoundedExport, createOtlpSpans, type DropReason } from './otlp-spans.ts';
import type { Spans } from './spans.ts';

function open(maxQueuedSpans: number) {
  const exported: ReadableSpan[][] = [];
  const waiting: ((result: ExportResult) => void)[] = [];
  const dropped: [DropReason, number, string | undefined][] = [];
  let isAnswering = false;
  const exporter: SpanExporter = {
    export(spans, done) {
      exported.push(spans);
      if (isAnswering) done({ code: ExportResultCode.SUCCESS });
      else waiting.push(done);
    },
    shutdown: () => Promise.resolve(),
  };
  const processor = createBoundedExport(exporter, {
    maxQueuedSpans,
    // No timer runs out: a batch goes when it is full, or when it is flushed.
    delayMs: 3_600_000,
    onDropped: (reason, spans, error) => dropped.push([reason, spans, error?.message]),
  });
  const tracer = new TracerProvider({ spanProcessors: [processor] }).getTracer('test');
  return {
    dropped,
    processor,
    exported: () => exported.map((spans) => spans.length),
    end: (count: number): void => {
      for (let made = 0; made < count; made += 1) tracer.startSpan('attempt').end();
    },
    /** The collector answers what waits for it, and everything from now on. */
    answer: (result: ExportResult = { code: ExportResultCode.SUCCESS }): void => {
      isAnswering = true;
      for (const done of waiting) done(result);
    },
  };
}

const sum = (numbers: number[]): number => numbers.reduce((one, other) => one + other, 0);

it('counts each span that its queue cannot take, while a collector does not answer', async () => {
  const { dropped, processor, exported, end, answer } = open(1_000);
  end(512 + 1_000 + 7);
  expect(exported()).toEqual([512]);
  expect(dropped).toEqual(Array.from({ length: 7 }, () => ['queue_full', 1, undefined]));
  answer();
  await processor.shutdown();
});

it('takes spans again once the collector answers', async () => {
  const { dropped, processor, exported, end, answer } = open(1_000);
  end(512 + 1_000 + 1);
  answer();
  await processor.forceFlush();
  end(10);
  await processor.shutdown();
  expect([dropped.length, sum(exported())]).toEqual([1, 1_522]);
});

it('counts every span of a batch that could not be exported', async () => {
  const { dropped, processor, end, answer } = open(1_000);
  end(3);
  const flushed = processor.forceFlush().catch(() => 'failed');
  answer({ code: ExportResultCode.FAILED, error: new Error('refused') });
  expect(await flushed).toBe('failed');
  expect(dropped).toEqual([['export_failed', 3, 'refused']]);
});

describe('otlp spans', () => {
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
});
