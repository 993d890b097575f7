import { expect, it } from '@jest/globals';
import { recordedSpans } from '../../../../test/support/samples/recorded-spans.ts';
import { countingIds, sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { createPublishQueue, tracePublish } from './publish-queue.ts';
import type { TrackedMessage } from './watermark-tracker.ts';

const PARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
const newId = countingIds();

function open() {
  const spans = recordedSpans();
  let nowMs = 1_000;
  const queue = tracePublish(
    createPublishQueue({ topic: 'created', budgetBytes: 1e9 }),
    spans,
    () => (nowMs += 1),
  );
  return { spans, queue };
}

function tracked(id: string): TrackedMessage {
  return { id, createdAtMs: 0, isPublished: false };
}

it('puts the traceparent of its span into the records, and ends it when Kafka has all of them', () => {
  const { spans, queue } = open();
  const message = sampleMessage(newId('msg'), { traceparent: PARENT, targets: ['wh_1', 'wh_2'] });
  queue.add(message, tracked(message.id));
  const batch = queue.takeBatch();
  const [span] = spans.all;
  expect(batch.records.map(({ headers }) => headers?.traceparent)).toEqual([
    span?.traceparent,
    span?.traceparent,
  ]);
  expect(span).toMatchObject({ step: 'publish', parent: PARENT, startMs: 1_001, ended: null });
  queue.acknowledge(batch);
  expect(span?.ended).toEqual({ endMs: 1_002 });
});

it('leaves a message without a traceparent as it is', () => {
  const { spans, queue } = open();
  const message = sampleMessage(newId('msg'));
  queue.add(message, tracked(message.id));
  const { records } = queue.takeBatch();
  expect([spans.all, records[0]?.headers]).toEqual([[], { requestId: 'request-1' }]);
});

it('holds 5,000 open spans at most while Kafka is away, and counts the others as dropped', () => {
  const { spans, queue } = open();
  for (let count = 0; count < 5_003; count += 1) {
    const message = sampleMessage(newId('msg'), { traceparent: PARENT });
    queue.add(message, tracked(message.id));
  }
  expect([spans.all.length, spans.dropped()]).toEqual([5_000, 3]);
  // Those are below the acceptance itself.
  const records = [];
  while (!queue.isEmpty()) records.push(...queue.takeBatch().records);
  expect(records.at(-1)?.headers?.traceparent).toBe(PARENT);
});
