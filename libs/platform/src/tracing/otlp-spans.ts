import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Attributes,
  type Context,
  type Span,
  type Tracer,
} from '@opentelemetry/api';
import type { OpenSpan, SpanAttributes, Spans, TracedStep } from './spans.ts';

const KINDS: Readonly<Record<TracedStep, SpanKind>> = {
  accept: SpanKind.SERVER,
  publish: SpanKind.PRODUCER,
  attempt: SpanKind.CLIENT,
  settle: SpanKind.INTERNAL,
};

/** Spans of a tracer of the OpenTelemetry SDK. */
export function createOtlpSpans(tracer: Tracer, countDropped: () => void): Spans {
  return {
    countDropped,
    begin({ step, parent, startMs, attributes }) {
      const options = { kind: KINDS[step], startTime: startMs, attributes: present(attributes) };
      const span = tracer.startSpan(step, options, contextOf(parent));
      return span.isRecording() ? openSpan(span) : null;
    },
  };
}

function openSpan(span: Span): OpenSpan {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return {
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
    end({ endMs, attributes, failure }) {
      if (attributes) span.setAttributes(present(attributes));
      if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure });
      span.end(endMs);
    },
  };
}

/** The parent is well formed: it was read with `traceparentOf`, or written here. */
function contextOf(parent: string | undefined): Context {
  if (parent === undefined) return ROOT_CONTEXT;
  const [, traceId = '', spanId = '', flags = ''] = parent.split('-');
  const traceFlags = parseInt(flags, 16) & TraceFlags.SAMPLED;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

function present(attributes: SpanAttributes): Attributes {
  const set: Attributes = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) set[name] = value;
  }
  return set;
}
