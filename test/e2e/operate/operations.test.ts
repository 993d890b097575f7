import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { VERSION } from '@posthorn/platform/service/metrics.ts';
import { defaultMemoryMib } from '@posthorn/platform/memory/memory-shares.ts';
import { metricsOfServices, OPTIONAL_METRICS } from '../../../docs/metrics-of-services.ts';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { useReceiver } from '../../support/process/use-company.ts';
import { eventually } from '../../support/time/eventually.ts';
import { createResources } from '../../support/api/resources.ts';
import { createApiClient } from '../../support/api/api-client.ts';
import type { CreatedCompany } from '../../support/process/setup.ts';
import {
  ADMIN,
  SERVICES,
  startPosthorn,
  type Posthorn,
  type UsualService,
} from '../../support/process/posthorn.ts';
import { metricOf, untilMetric } from '../../support/process/traffic.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { selfSigned } from '../../support/receivers/self-signed.ts';
import {
  startTraceCollector,
  type CollectedSpan,
  type TraceCollector,
} from '../../support/receivers/trace-collector.ts';
import { runProgram, startProgram } from '../../support/process/service-process.ts';

/** Each marker is in one place only, so that a hit shows where it comes from. */
const MARKERS = {
  hmacSecret: 'hush-hmac-secret-of-the-webhook',
  basicAuthPassword: 'hush-basic-password',
  apiKey: 'hush-key-of-the-endpoint',
  clientSecret: 'hush-client-secret',
  accessToken: 'hush-access-token',
  header: 'hush-custom-header',
  payload: 'hush-payload',
  answer: 'hush-answer-of-the-endpoint',
  query: 'hush-query-of-the-url',
  wrongKey: 'phk_hush-wrong-key',
};
const clientCertificate = selfSigned('client.example.com');
const [, keyText = ''] = clientCertificate.key.split('\n');
const methodsWith = (tokenServer: Receiver): object[] => [
  { hmacSecret: MARKERS.hmacSecret },
  {
    authMethod: 'basic',
    basicAuthUsername: 'user',
    basicAuthPassword: MARKERS.basicAuthPassword,
  },
  { authMethod: 'apiKey', apiKey: MARKERS.apiKey, apiKeyHeader: 'X-Their-Key' },
  {
    authMethod: 'oauth2',
    oauth2TokenUrl: `${tokenServer.url}?token=${MARKERS.query}`,
    oauth2ClientId: 'posthorn',
    oauth2ClientSecret: MARKERS.clientSecret,
  },
];

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const CLIENT_SPAN = '00f067aa0ba902b7';

let posthorn: Posthorn<UsualService>;
const receiver = useReceiver();
let collector: TraceCollector;
let isCollecting = true;

beforeAll(async () => {
  collector = await startTraceCollector();
  posthorn = await startPosthorn(
    {
      LOG_LEVEL: 'trace',
      // The first retry comes soon, and the second one stays parked.
      RETRY_DELAYS: '300ms,1h',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20collector-token',
      OTEL_EXPORTER_OTLP_TIMEOUT: '5000',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    },
    { processes: SERVICES },
  );
}, 120_000);

afterAll(async () => {
  await posthorn.stop();
  if (isCollecting) await collector.close();
});

describe('The operation of the services', () => {
  async function textOf(url: string): Promise<string> {
    return (await fetch(url)).text();
  }

  it.each(SERVICES)('%s serves livez, readyz and metrics on its management port', async (name) => {
    const { opsUrl } = posthorn[name];
    expect(await textOf(`${opsUrl}/livez`)).toBe('ok\n');
    expect(await textOf(`${opsUrl}/readyz`)).toBe('ok\n');
    const metrics = await textOf(`${opsUrl}/metrics`);
    expect(metrics).toContain(`posthorn_build_info{version="${VERSION}",component="${name}"} 1`);
    expect(metrics).toContain(`posthorn_dependency_up{dependency="mongodb"} 1`);
  });

  it.each(SERVICES)(
    '%s has exactly the metrics of docs/metrics.md, and at most 2,000 series',
    async (name) => {
      const text = await textOf(`${posthorn[name].opsUrl}/metrics`);
      const all = [...text.matchAll(/^# TYPE (posthorn_\w+)/gm)].map(([, found = '']) => found);
      const names = all.filter((found) => !OPTIONAL_METRICS.test(found));
      const documented = documentedOf(name);
      expect(names.sort()).toEqual(documented.sort());
      const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
      expect(series.length).toBeLessThanOrEqual(2_000);
    },
  );

  it.each(['gateway', 'retry'] as const)(
    'all budgets of %s are shares of MEMORY_MIB',
    async (name) => {
      const text = await textOf(`${posthorn[name].opsUrl}/metrics`);
      const budgets = [...text.matchAll(/^posthorn_memory_budget_bytes\{.*\} (\d+)$/gm)];
      const bytes = budgets.reduce((sum, [, budget]) => sum + Number(budget), 0);
      expect(bytes / 1_048_576).toBeCloseTo(defaultMemoryMib(name), 3);
    },
  );

  it('the dispatcher counts an attempt, and logs it with the ids of request, message and delivery but no secret [security]', async () => {
    const { appId } = await posthorn.api.createTarget(receiver.url);
    const { body } = await posthorn.api.post('/webhooks', { url: receiver.url, appId });
    const { id, secret } = body.data as { id: string; secret: string };
    const accepted = await posthorn.api.post(
      '/webhook-messages',
      { webhookId: id, payload: { marker: 'payload-marker-1' } },
      { 'x-request-id': 'request-0001' },
    );
    expect(accepted.headers.get('x-request-id')).toBe('request-0001');
    const data = accepted.body.data as { id: string; deliveries: { id: string }[] };
    const line = await eventually('the log line of the attempt', () =>
      posthorn.dispatcher
        .output()
        .split('\n')
        .find((text) => text.includes(data.id)),
    );
    expect(JSON.parse(line)).toMatchObject({
      level: 'debug',
      requestId: 'request-0001',
      messageId: data.id,
      deliveryId: data.deliveries[0]?.id,
      webhookId: id,
      companyId: posthorn.companyId,
      outcome: 'success',
    });
    const success = 'outcome="success",trigger="first"';
    await untilMetric(posthorn.dispatcher, 'posthorn_delivery_attempts_total', success);
    const logs = SERVICES.map((name) => posthorn[name].output()).join('');
    for (const forbidden of [secret, posthorn.apiKey, 'payload-marker-1']) {
      expect(logs).not.toContain(forbidden);
    }
  });

  it('a company created by the administration command can use the API', async () => {
    const args = ['company', 'create', 'Another', '--json'];
    const created = JSON.parse(await runProgram(ADMIN, args, posthorn.env)) as CreatedCompany;
    const api = createApiClient(posthorn.baseUrl, created.apiKey);
    expect((await api.get('/webhooks')).status).toBe(200);
    expect(created.companyId).toMatch(/^comp_/);
  });

  it.each(SERVICES)(
    '%s refuses wrong settings with one message that names each of them',
    async (name) => {
      const service = startProgram(`services/${name}/src/main.ts`, [], {
        ...posthorn.env,
        RETRY_DELAYS: 'soon',
        OPS_PORT: 'high',
        MONGODB_URL: 'mysql://user:hunter2@localhost/x',
      });
      expect((await service.ended).code).toBe(1);
      const message = service.output();
      for (const setting of ['RETRY_DELAYS', 'OPS_PORT', 'MONGODB_URL']) {
        expect(message).toContain(setting);
      }
      expect(message).not.toContain('hunter2');
      expect(message).not.toContain('    at ');
    },
  );

  it('a service refuses a Kafka address that does not respond, and names the setting', async () => {
    const [port = 0, opsPort = 0] = await freePorts(2);
    const service = startProgram('services/dispatcher/src/main.ts', [], {
      ...posthorn.env,
      OPS_PORT: String(opsPort),
      KAFKA_BROKERS: `127.0.0.1:${port}`,
      LOG_LEVEL: 'silent',
    });
    expect((await service.ended).code).toBe(1);
    const [before, after] = service
      .output()
      .trim()
      .split(/: .*ECONNREFUSED.*?\. /);
    expect(before).toBe(`Kafka cannot be used at 127.0.0.1:${port}`);
    expect(after).toBe('Start it, or correct KAFKA_BROKERS, KAFKA_SSL_* and KAFKA_SASL_*.');
  });

  it('a service refuses a port that is taken, and names the setting that changes it', async () => {
    const [opsPort = 0] = await freePorts(1);
    const second = startProgram('services/gateway/src/main.ts', [], {
      ...posthorn.env,
      OPS_PORT: String(opsPort),
      LOG_LEVEL: 'silent',
    });
    expect((await second.ended).code).toBe(1);
    const port = posthorn.env.PORT ?? '';
    expect(second.output().trim()).toBe(
      `Port ${port} on 127.0.0.1 is taken by another process. Free it, or set PORT to another port.`,
    );
  });

  it('the retry service sends messages to itself through the front door, and shows how old the last one is', async () => {
    const [port = 0] = await freePorts(1);
    const receiverUrl = `http://127.0.0.1:${port}/`;
    const canary = await posthorn.start('retry', {
      CANARY_API_KEY: posthorn.apiKey,
      CANARY_GATEWAY_URL: posthorn.baseUrl,
      CANARY_RECEIVER_URL: receiverUrl,
      CANARY_PORT: String(port),
      CANARY_INTERVAL: '1s',
    });
    await untilMetric(canary, 'posthorn_canary_duration_seconds_count', '', 2);
    expect(await metricOf(canary, 'posthorn_canary_age_seconds')).toBeLessThan(60);
    // A busy gateway may accept one too late. All that arrive are right.
    for (const reason of ['wrong_signature', 'unreadable']) {
      expect(await metricOf(canary, 'posthorn_canary_failures_total', reason)).toBe(0);
    }
    const { body } = await posthorn.api.get('/webhooks');
    const webhooks = body.data as { name: string; url: string }[];
    expect(webhooks.filter(({ name }) => name === 'Posthorn canary')).toMatchObject([
      { url: receiverUrl },
    ]);
    const forged = { method: 'POST', body: '{"sentAtMs":1}' };
    const refused = await fetch(receiverUrl, forged);
    expect([refused.status, refused.headers.has('www-authenticate')]).toEqual([401, true]);
    expect((await canary.stop()).code).toBe(0);
  });
});

describe('Logs at the most talkative level, and metrics [security]', () => {
  let tokenServer: Receiver;
  const secrets: string[] = [];

  beforeAll(async () => {
    tokenServer = await startReceiver();
    tokenServer.answerWith((response) => {
      response.end(JSON.stringify({ access_token: MARKERS.accessToken, token_type: 'Bearer' }));
    });
  });

  afterAll(() => tokenServer.close());

  async function createWebhook(method: object): Promise<string> {
    const { appId } = await posthorn.api.createTarget(receiver.url);
    const customHeaders = [{ key: 'X-Tenant', value: MARKERS.header }];
    const tls = { certificate: clientCertificate.cert, key: clientCertificate.key };
    const url = `${receiver.url}?token=${MARKERS.query}`;
    const body = { url, appId, customHeaders, tls, ...method };
    const created = await posthorn.api.post('/webhooks', body);
    const { id, secret } = created.body.data as { id: string; secret: string };
    secrets.push(secret);
    return id;
  }

  it('show no secret, key, payload or answer after deliveries, failures, retries and refusals', async () => {
    const { deliveryOnce } = createResources(posthorn.api);
    for (const method of methodsWith(tokenServer)) {
      const webhookId = await createWebhook(method);
      receiver.answerWith((response, _received, nth) => {
        response.writeHead(nth === 1 ? 500 : 200).end(MARKERS.answer);
      });
      const { deliveryId } = await posthorn.api.send({ webhookId }, { marker: MARKERS.payload });
      await deliveryOnce('delivered', deliveryId);
      await posthorn.api.post(`/api/v1/webhooks/${webhookId}/rotate-secret`, {});
      await posthorn.api.post('/webhooks', { url: 7, hmacSecret: MARKERS.hmacSecret, ...method });
    }
    receiver.answerWith((response) => response.writeHead(200).end());
    await fetch(`${posthorn.baseUrl}/webhooks`, { headers: { 'x-api-key': MARKERS.wrongKey } });

    const pages = SERVICES.map(async (name) =>
      (await fetch(`${posthorn[name].opsUrl}/metrics`)).text(),
    );
    const shown =
      SERVICES.map((name) => posthorn[name].output()).join('') +
      (await Promise.all(pages)).join('');
    expect(shown).toContain('"outcome":"success"');
    const [, encryptionKey = ''] = posthorn.env.ENCRYPTION_KEYS?.split(':') ?? [];
    const login = `user:${MARKERS.basicAuthPassword}`;
    const keys = [keyText, posthorn.apiKey, encryptionKey];
    const forbidden = [...Object.values(MARKERS), login, ...secrets, ...keys];
    for (const secret of forbidden) {
      expect(shown).not.toContain(secret);
      expect(shown).not.toContain(Buffer.from(secret).toString('base64').slice(0, -4));
    }
  });
});

describe('Traces that are exported to a collector', () => {
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

  /** Waits until as many settlements are there, and what comes before them: each service exports its spans by itself. */
  async function untilSettled(messageId: string, count = 1): Promise<CollectedSpan[]> {
    const wanted = { accept: 1, publish: 1, attempt: count, settle: count };
    return eventually('the spans of the message', () => {
      const spans = spansOf(messageId);
      const areAll = Object.entries(wanted).every(([name, n]) => named(spans, name).length >= n);
      return areAll ? spans : null;
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
    const spans = await untilSettled(messageId);
    expect(spans).toHaveLength(4);
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

  it('an unsampled request makes no span, and its traceparent arrives unchanged', async () => {
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

  it('a collector that is down stops no delivery, and dropped spans are counted', async () => {
    await collector.close();
    isCollecting = false;
    const { id: webhookId } = await newWebhook();
    const messageId = await send(webhookId, {});
    await eventually('the delivery', () => receiver.of(messageId)[0]);
    for (const service of [posthorn.gateway, posthorn.dispatcher]) {
      await untilMetric(service, 'posthorn_spans_dropped_total', 'reason="export_failed"');
    }
  });
});

describe('SIGTERM', () => {
  it('ends each service with 0 while a retry is parked and the collector is away', async () => {
    receiver.answerWith((response) => response.writeHead(500).end());
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const { deliveryId } = await posthorn.api.send({ webhookId }, {});
    await eventually('the second failure', async () => {
      const { body } = await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`);
      return (body.data as { attemptCount: number }).attemptCount === 2;
    });
    const ends = await Promise.all(SERVICES.map((name) => posthorn[name].stop()));
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(posthorn.retry.output()).not.toContain('"level":"error"');
  });
});

function documentedOf(name: UsualService): string[] {
  const metrics = metricsOfServices()[name].getMetricsAsArray();
  return metrics
    .map((metric) => metric.name)
    .filter((found) => found.startsWith('posthorn_') && !OPTIONAL_METRICS.test(found));
}
