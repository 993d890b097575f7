import { expect, it } from '@jest/globals';
import { recordedSpans } from '../../../../test/support/samples/recorded-spans.ts';
import { unavailable } from '../api-error.ts';
import type { AcceptResult, NewMessage } from './accept-message.ts';
import { traceAccept } from './trace-accept.ts';

const PARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
const UNSAMPLED = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`;

const request: NewMessage = {
  companyId: 'comp_a',
  address: { kind: 'app', appId: 'app_1', eventType: null },
  eventType: null,
  payload: '{"card":"4111"}',
  requestId: 'request-1',
  idempotency: null,
};
const message = { id: 'msg_1', targets: ['wh_1', 'wh_2'] };
const accepted = { kind: 'accepted', message } as AcceptResult;

function open(result: AcceptResult = accepted) {
  const spans = recordedSpans();
  const given: NewMessage[] = [];
  const traced = traceAccept(
    (requests) => {
      given.push(...requests);
      return Promise.resolve(requests.map(() => result));
    },
    spans,
    () => 1_000,
  );
  return { spans, given, traced };
}

it('stores the message with the traceparent of its span, which names the message and not its payload', async () => {
  const { spans, given, traced } = open();
  expect(await traced([{ ...request, traceparent: PARENT }])).toEqual([accepted]);
  const [span] = spans.all;
  expect(given[0]?.traceparent).toBe(span?.traceparent);
  expect(span).toMatchObject({
    step: 'accept',
    parent: PARENT,
    attributes: { 'posthorn.company.id': 'comp_a', 'posthorn.app.id': 'app_1' },
    ended: { attributes: { 'posthorn.message.id': 'msg_1', 'posthorn.targets': 2 } },
  });
  expect(JSON.stringify(spans.all)).not.toContain('4111');
});

it('begins a trace for a message without a traceparent', async () => {
  const { spans, given, traced } = open();
  await traced([request]);
  expect(spans.all).toMatchObject([{ step: 'accept', parent: undefined }]);
  expect(given[0]?.traceparent).toBe(spans.all[0]?.traceparent);
});

it('leaves the request as it is when its trace is not sampled', async () => {
  const { given, traced } = open();
  const unsampled = { ...request, traceparent: UNSAMPLED };
  await traced([unsampled]);
  expect(given).toEqual([unsampled]);
});

it('ends the span with the code of a refusal', async () => {
  const { spans, traced } = open({ kind: 'failed', error: unavailable('mongodb_unavailable') });
  await traced([request]);
  expect(spans.all).toMatchObject([
    { ended: { failure: unavailable('mongodb_unavailable').code } },
  ]);
});
