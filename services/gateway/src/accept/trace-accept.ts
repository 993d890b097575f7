import type { Spans } from '@posthorn/platform/tracing/spans.ts';
import { ApiError } from '../http/api-error.ts';
import type { AcceptMessage } from './accept-message.ts';

/**
 * Makes a span of each acceptance. What follows of the message is below it: the message is stored with the `traceparent` of
 * the span in place of the client's.
 */
export function traceAccept(
  accept: AcceptMessage['accept'],
  spans: Spans,
  nowMs: () => number,
): AcceptMessage['accept'] {
  return async (request, takeTurn) => {
    const span = spans.begin({
      step: 'accept',
      parent: request.traceparent,
      startMs: nowMs(),
      attributes: {
        'posthorn.company.id': request.companyId,
        'posthorn.app.id': request.address.kind === 'app' ? request.address.appId : undefined,
        'posthorn.request.id': request.requestId,
      },
    });
    if (!span) return accept(request, takeTurn);
    try {
      const data = await accept({ ...request, traceparent: span.traceparent }, takeTurn);
      const targets = data?.deliveries.length;
      const attributes = { 'posthorn.message.id': data?.id, 'posthorn.targets': targets };
      span.end({ endMs: nowMs(), attributes });
      return data;
    } catch (error) {
      const failure = error instanceof ApiError ? error.code : 'internal_error';
      span.end({ endMs: nowMs(), failure });
      throw error;
    }
  };
}
