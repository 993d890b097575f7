import type { OpenSpan, Spans } from '@posthorn/platform/tracing/spans.ts';
import type { PublishQueue } from './publish-queue.ts';
import type { TrackedMessage } from './watermark-tracker.ts';

/** While Kafka is away the queue may hold tens of thousands of messages, and a span takes about 2 kB. */
const MAX_OPEN = 5_000;

/**
 * Makes a span of each message, from its place in the queue until Kafka has acknowledged all of its records. The records
 * carry the `traceparent` of the span, so that attempts are below it.
 */
export function tracePublish(queue: PublishQueue, spans: Spans, nowMs: () => number): PublishQueue {
  const open = new Map<TrackedMessage, OpenSpan>();
  return {
    ...queue,
    add(message, tracked) {
      const { traceparent, id, companyId, appId, targets } = message;
      const span = traceparent === undefined ? null : beginOrDrop();
      if (!span) {
        queue.add(message, tracked);
        return;
      }
      open.set(tracked, span);
      queue.add({ ...message, traceparent: span.traceparent }, tracked);

      function beginOrDrop(): OpenSpan | null {
        if (open.size >= MAX_OPEN) {
          spans.countDropped();
          return null;
        }
        return spans.begin({
          step: 'publish',
          parent: traceparent,
          startMs: nowMs(),
          attributes: {
            'posthorn.message.id': id,
            'posthorn.company.id': companyId,
            'posthorn.app.id': appId,
            'posthorn.targets': targets.length,
          },
        });
      }
    },
    acknowledge(batch) {
      queue.acknowledge(batch);
      const endMs = nowMs();
      for (const { tracked } of batch.completed) {
        open.get(tracked)?.end({ endMs });
        open.delete(tracked);
      }
    },
  };
}
