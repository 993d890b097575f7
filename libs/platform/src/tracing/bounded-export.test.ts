import { ExportResultCode, type ExportResult } from '@opentelemetry/core';
import { TracerProvider, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace';
import { expect, it } from '@jest/globals';
import { createBoundedExport, type DropReason } from './bounded-export.ts';

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
