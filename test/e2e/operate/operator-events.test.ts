import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { eventually } from '../../support/time/eventually.ts';

interface Told {
  type: string;
  data: { companyId: string; webhookId: string; count: number; detail: string };
}

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

describe('The operator', () => {
  let posthorn: Posthorn;
  let endpoint: Receiver;
  let operator: Receiver;

  beforeAll(async () => {
    [endpoint, operator] = [await startReceiver(), await startReceiver()];
    posthorn = await startPosthorn({
      RETRY_DELAYS: '50ms',
      CIRCUIT_RESET_MS: '100',
      OPERATOR_WEBHOOK_URL: `${operator.url}/events`,
      OPERATOR_WEBHOOK_SECRET: SECRET,
    });
  }, 120_000);

  afterAll(async () => {
    await posthorn.stop();
    await Promise.all([endpoint.close(), operator.close()]);
  }, 60_000);

  /** The events that arrived about a webhook, of which the signature of each is verified. */
  function toldOf(webhookId: string): Told[] {
    const told = operator.received.map(({ body, headers }) => {
      return new Webhook(SECRET).verify(String(body), headers as Record<string, string>) as Told;
    });
    return told.filter(({ data }) => data.webhookId === webhookId);
  }

  const typesOf = (webhookId: string): string[] => toldOf(webhookId).map(({ type }) => type);

  it('is told once of an endpoint whose deliveries are exhausted, and of its circuit', async () => {
    endpoint.answerWith(failing(99));
    const { webhookId } = await posthorn.api.createTarget(endpoint.url);
    for (let n = 0; n < 12; n += 1) await posthorn.api.send({ webhookId }, { n });
    await eventually('the events of failures', () => {
      const types = typesOf(webhookId);
      return types.includes('delivery.exhausted') && types.includes('circuit.opened');
    });
    endpoint.answerWith((response) => response.writeHead(200).end());
    await posthorn.api.send({ webhookId }, { n: 'recovered' });
    await eventually('the event of the closed circuit', () =>
      typesOf(webhookId).includes('circuit.closed'),
    );
    expect(typesOf(webhookId).sort()).toEqual([
      'circuit.closed',
      'circuit.opened',
      'delivery.exhausted',
    ]);
    const { companyId } = posthorn;
    for (const { data } of toldOf(webhookId)) expect(data).toMatchObject({ companyId, webhookId });
  });
});
