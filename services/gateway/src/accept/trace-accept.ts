import type { OpenSpan, SpanEnd, Spans } from '@posthorn/platform/service/spans.ts';
import { toApiError } from '../api-error.ts';
import type { AcceptMessages, AcceptResult, NewMessage } from './accept-message.ts';

/**
 * Makes a span of each acceptance. Later spans of the message are below it: the message is stored with the `traceparent`
 * of the span in place of the client's.
 */
export function traceAccept(
  accept: AcceptMessages['accept'],
  spans: Spans,
  nowMs: () => number,
): AcceptMessages['accept'] {
  const begin = ({ companyId, address, requestId, traceparent }: NewMessage): OpenSpan | null =>
    spans.begin({
      step: 'accept',
      parent: traceparent,
      startMs: nowMs(),
      attributes: {
        'posthorn.company.id': companyId,
        'posthorn.app.id': address.kind === 'app' ? address.appId : undefined,
        'posthorn.request.id': requestId,
      },
    });
  return async (requests, options) => {
    const open = requests.map(begin);
    const traced = requests.map((request, index) => {
      const span = open[index];
      return span ? { ...request, traceparent: span.traceparent } : request;
    });
    const results = await accept(traced, options);
    const endMs = nowMs();
    results.forEach((result, index) => open[index]?.end({ endMs, ...endOf(result) }));
    return results;
  };
}

function endOf(result: AcceptResult): Omit<SpanEnd, 'endMs'> {
  switch (result.kind) {
    case 'accepted': {
      const { id, targets } = result.message;
      return { attributes: { 'posthorn.message.id': id, 'posthorn.targets': targets.length } };
    }
    case 'repeated':
      return {};
    case 'failed':
      return { failure: toApiError(result.error).code };
  }
}
