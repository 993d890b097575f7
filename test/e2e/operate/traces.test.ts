import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { untilMetric } from '../../support/process/traffic.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import {
  startTraceCollector,
  type CollectedSpan,
  type TraceCollector,
} from '../../support/receivers/trace-collector.ts';
import { eventually } from '../../support/time/eventually.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const CLIENT_SPAN = '00f067aa0ba902b7';

describe('Traces that are exported to a collector', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;
  let collector: TraceCollector;
  let isCollecting = true;

  beforeAll(async () => {
    collector = await startTraceCollector();
    posthorn = await startPosthorn({
      RETRY_DELAYS: '100ms,200ms',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20collector-token',
      OTEL_EXPORTER_OTLP_TIMEOUT: '1000',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    });
    receiver = await startReceiver();
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
    if (isCollecting) await collector.close();
  }, 60_000);

  async function send(webhookId: string, headers: Record<string, string>) {
    const { status, body } = await posthorn.api.post(
      '/webhook-messages',
      { webhookId, payload: { card: 'payload-marker-4111' } },
      headers,
    );
    expect(status).toBe(202);
    return (body.data as { id: string }).id;
  }

  async function newWebhook(): Promise<{ id: string; secret: string }> {
    const { appId } = await posthorn.api.createTarget(receiver.url);
    const url = `${receiver.url}/path-marker?token=query-marker`;
    const { body } = await posthorn.api.post('/webhooks', { url, appId });
    return body.data as { id: string; secret: string };
  }

  function spansOf(messageId: string): CollectedSpan[] {
    return collector.spans.filter(
      ({ attributes }) => attributes['posthorn.message.id'] === messageId,
    );
  }

  /** Waits until as many settlements are there: the last spans of an attempt. */
  async function untilSettled(messageId: string, count = 1): Promise<CollectedSpan[]> {
    return eventually('the spans of the message', () => {
      const spans = spansOf(messageId);
      return spans.filter(({ name }) => name === 'settle').length >= count ? spans : null;
    });
  }

  const named = (spans: CollectedSpan[], name: string): CollectedSpan[] =>
    spans
      .filter((span) => span.name === name)
      .sort((one, other) => (one.startTimeUnixNano < other.startTimeUnixNano ? -1 : 1));

  it('one request is one trace: accept, publish, attempt and settle, each below the one before', async () => {
    const { id: webhookId } = await newWebhook();
    const traceparent = `00-${TRACE_ID}-${CLIENT_SPAN}-01`;
    const messageId = await send(webhookId, { traceparent });
    const spans = await eventually('four spans', async () => {
      const found = await untilSettled(messageId);
      return found.length === 4 ? found : null;
    });
    const [accept, publish, attempt, settle] = ['accept', 'publish', 'attempt', 'settle'].map(
      (name) => named(spans, name)[0],
    );
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE_ID]));
    expect([accept, publish, attempt, settle].map((span) => span?.parentSpanId)).toEqual([
      CLIENT_SPAN,
      accept?.spanId,
      publish?.spanId,
      attempt?.spanId,
    ]);
    expect([accept, publish, attempt, settle].map((span) => span?.service)).toEqual([
      'posthorn-gateway',
      'posthorn-gateway',
      'posthorn-dispatcher',
      'posthorn-dispatcher',
    ]);
    expect(attempt?.attributes).toMatchObject({
      'posthorn.message.id': messageId,
      'posthorn.webhook.id': webhookId,
      'posthorn.company.id': posthorn.companyId,
      'posthorn.attempt.number': 1,
      'posthorn.attempt.outcome': 'success',
      'http.response.status_code': 200,
    });
    // The endpoint's own spans are below the attempt.
    const [request] = receiver.of(messageId);
    expect(request?.headers.traceparent).toBe(`00-${TRACE_ID}-${attempt?.spanId ?? ''}-01`);
  });

  it('a retry is an attempt of the same trace, with its number', async () => {
    receiver.answerWith(failing(1));
    const { id: webhookId } = await newWebhook();
    const messageId = await send(webhookId, {});
    const spans = await untilSettled(messageId, 2);
    const attempts = named(spans, 'attempt');
    expect(attempts).toMatchObject([
      { attributes: { 'posthorn.attempt.number': 1 }, status: { code: 2, message: 'http_5xx' } },
      { attributes: { 'posthorn.attempt.number': 2 }, status: { code: 0 } },
    ]);
    const [publish] = named(spans, 'publish');
    expect(attempts.map(({ traceId, parentSpanId }) => [traceId, parentSpanId])).toEqual(
      attempts.map(() => [publish?.traceId, publish?.spanId]),
    );
    receiver.answerWith((response) => response.writeHead(200).end('ok'));
  });

  it('a request that says that it is not sampled makes no span, and its traceparent arrives unchanged', async () => {
    const { id: webhookId } = await newWebhook();
    const traceparent = `00-${TRACE_ID}-${CLIENT_SPAN}-00`;
    const unsampledId = await send(webhookId, { traceparent });
    // Sent later, so its spans come later than those of the message before would.
    await untilSettled(await send(webhookId, {}));
    const request = await eventually('the delivery', () => receiver.of(unsampledId)[0]);
    expect(request.headers.traceparent).toBe(traceparent);
    expect(spansOf(unsampledId)).toEqual([]);
  });

  it('no secret, payload or URL of an endpoint is in what the collector got', async () => {
    const { id: webhookId, secret } = await newWebhook();
    await untilSettled(await send(webhookId, {}));
    const received = collector.received();
    expect(received).toContain(webhookId);
    expect(received).toContain('Bearer collector-token');
    expect(received).toContain('deployment.environment.name');
    for (const hidden of [secret, posthorn.apiKey, '-marker', receiver.url]) {
      expect(received).not.toContain(hidden);
    }
  });

  it('a collector that is down stops no delivery, and what is dropped is counted', async () => {
    await collector.close();
    isCollecting = false;
    const { id: webhookId } = await newWebhook();
    const messageId = await send(webhookId, {});
    await eventually('the delivery', () => receiver.of(messageId)[0]);
    for (const service of [posthorn.gateway, posthorn.dispatcher]) {
      await untilMetric(service, 'posthorn_spans_dropped_total', 'reason="export_failed"');
    }
    expect((await posthorn.dispatcher.stop()).code).toBe(0);
  });
});
