import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { metricsOfServices, OPTIONAL_METRICS } from '../../../docs/metrics-of-services.ts';
import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { eventually } from '../../support/time/eventually.ts';
import { createApiClient } from '../../support/api/api-client.ts';
import type { CreatedCompany } from '../../support/process/setup.ts';
import {
  ADMIN,
  startPosthorn,
  type Posthorn,
  type ServiceName,
} from '../../support/process/posthorn.ts';
import { metricOf, untilMetric } from '../../support/process/traffic.ts';
import { startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { runProgram, startProgram } from '../../support/process/service-process.ts';

const SERVICES: ServiceName[] = ['gateway', 'dispatcher', 'retry'];

describe('The operation of the services', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;

  beforeAll(async () => {
    // Attempts that succeed are logged at `debug`; at `info` only failures are.
    posthorn = await startPosthorn({ LOG_LEVEL: 'debug' });
    receiver = await startReceiver();
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  async function textOf(url: string): Promise<string> {
    return (await fetch(url)).text();
  }

  it.each(SERVICES)('%s serves livez, readyz and metrics on its management port', async (name) => {
    const { opsUrl } = posthorn[name];
    expect(await textOf(`${opsUrl}/livez`)).toBe('ok\n');
    expect(await textOf(`${opsUrl}/readyz`)).toBe('ok\n');
    const metrics = await textOf(`${opsUrl}/metrics`);
    expect(metrics).toContain(`posthorn_build_info{version="0.1.0",component="${name}"} 1`);
    expect(metrics).toContain(`posthorn_dependency_up{dependency="mongodb"} 1`);
  });

  it.each(SERVICES)(
    '%s has exactly the metrics of docs/metrics.md, and at most 1,500 series',
    async (name) => {
      const text = await textOf(`${posthorn[name].opsUrl}/metrics`);
      const names = [...text.matchAll(/^# TYPE (posthorn_\w+)/gm)].map(([, found]) => found);
      const documented = documentedOf(name);
      expect(names.sort()).toEqual(documented.sort());
      const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
      expect(series.length).toBeLessThanOrEqual(1_500);
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

  it('lets a company that the administration command creates use the API', async () => {
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
    expect(await metricOf(canary, 'posthorn_canary_age_seconds')).toBeLessThan(10);
    expect(await metricOf(canary, 'posthorn_canary_failures_total')).toBe(0);
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

  it('each service exits with 0 after SIGTERM, also while a retry is parked', async () => {
    receiver.answerWith((response) => response.writeHead(500).end());
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const { deliveryId } = await posthorn.api.send({ webhookId }, {});
    await eventually('the failure', async () => {
      const { body } = await posthorn.api.get(`/api/v1/deliveries/${deliveryId}`);
      return (body.data as { attemptCount: number }).attemptCount === 1;
    });
    const ends = await Promise.all(SERVICES.map((name) => posthorn[name].stop()));
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(posthorn.retry.output()).not.toContain('"level":"error"');
  });
});

function documentedOf(name: ServiceName): string[] {
  const metrics = metricsOfServices()[name].getMetricsAsArray();
  return metrics
    .map((metric) => metric.name)
    .filter((found) => found.startsWith('posthorn_') && !OPTIONAL_METRICS.test(found));
}
