import type { SpanEnd, Spans, SpanStart } from '@posthorn/platform/service/spans.ts';

export interface RecordedSpan extends SpanStart {
  traceparent: string;
  /** Null while it is open. */
  ended: SpanEnd | null;
}

export interface RecordedSpans extends Spans {
  all: RecordedSpan[];
  dropped: () => number;
}

/** Spans that a test can look at. Those of parents whose `traceparent` ends in 00 are not sampled. */
export function recordedSpans(): RecordedSpans {
  const all: RecordedSpan[] = [];
  let dropped = 0;
  return {
    all,
    dropped: () => dropped,
    countDropped: () => {
      dropped += 1;
    },
    begin(start) {
      if (start.parent?.endsWith('-00') === true) return null;
      const spanId = String(all.length + 1).padStart(16, '0');
      const traceId = start.parent?.split('-')[1] ?? 'f'.repeat(32);
      const span: RecordedSpan = {
        ...start,
        traceparent: `00-${traceId}-${spanId}-01`,
        ended: null,
      };
      all.push(span);
      return {
        traceparent: span.traceparent,
        end: (end) => {
          span.ended = end;
        },
      };
    },
  };
}
