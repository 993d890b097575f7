import { describe, expect, it } from '@jest/globals';
import { dataOf, expectInvalid } from '../../support/api/expect-answers.ts';
import type { ShownMessage } from '../../support/api/resources.ts';
import { useCompany, useReceiver } from '../../support/process/use-company.ts';
import { CLOCK_MS } from '../../support/time/clocks.ts';
import { eventually } from '../../support/time/eventually.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const { posthorn, make } = useCompany('contract');
const receiver = useReceiver();

const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();
const deliveryIdIn = ({ deliveries }: ShownMessage): string => String(deliveries[0]?.id);

describe('Time · deliverAt of a message', () => {
  it('is what its deliveries wait for', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const deliverAt = inMs(HOUR_MS);
    const message = await make.message({ webhookId, deliverAt });
    expect(message).toMatchObject({ deliverAt, deliveries: [{ status: 'pending' }] });
    const id = deliveryIdIn(message);
    const waits = { status: 'pending', waiting: 'time', nextAttemptAt: deliverAt, attempts: [] };
    const shown = await eventually('waiting', async () => {
      const found = await make.delivery(id);
      return (found as { waiting?: unknown }).waiting === 'time' ? found : null;
    });
    expect(shown).toMatchObject(waits);
  });

  it('is when its deliveries are attempted, and not before', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const deliverAt = inMs(4_000);
    const message = await make.message({ webhookId, deliverAt });
    const id = deliveryIdIn(message);
    const delivered = await make.deliveryOnce('delivered', id);
    expect(delivered).toMatchObject({ attemptCount: 1, waiting: null });
    const [received] = receiver.of(message.id);
    expect(received?.body.toString()).toBe('{"n":1}');
    expect(received?.atMs).toBeGreaterThan(Date.parse(deliverAt) - CLOCK_MS);
    expect(receiver.of(message.id)).toHaveLength(1);
  });

  it('keeps the delivery from being made when its payload is erased or its webhook deleted', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const other = await make.webhook({ url: receiver.url });
    const deliverAt = inMs(6_000);
    const erased = await make.message({ webhookId, deliverAt });
    const orphan = await make.message({ webhookId: other.id, deliverAt });
    const last = await make.message({ webhookId, deliverAt });
    const answer = await posthorn.api.post(
      `/api/v1/webhook-messages/${erased.id}/erase-payload`,
      undefined,
    );
    // No record has it: it is loaded when its time has come.
    expect(dataOf(answer)).toEqual({ erased: true, kafkaUntil: null });
    await posthorn.api.request('DELETE', `/webhooks/${other.id}`);
    await make.deliveryOnce('delivered', deliveryIdIn(last));
    expect(await make.deliveryOnce('cancelled', deliveryIdIn(erased))).toMatchObject({
      reason: 'payload_erased',
    });
    expect(await make.deliveryOnce('cancelled', deliveryIdIn(orphan))).toMatchObject({
      reason: 'webhook_deleted',
    });
    expect([...receiver.of(erased.id), ...receiver.of(orphan.id)]).toEqual([]);
  });

  it('is 400 unless it is a second to 28 days ahead here, and before the end', async () => {
    const { id: webhookId } = await make.webhook({ url: receiver.url });
    const send = (fields: object) =>
      posthorn.api.post('/webhook-messages', { webhookId, payload: {}, ...fields });
    for (const fields of [
      { deliverAt: inMs(0) },
      { deliverAt: inMs(29 * DAY_MS) },
      { deliverAt: inMs(60_000), expiresAt: inMs(59_000) },
      { deliverAt: inMs(2 * DAY_MS), retentionDays: 1 },
    ]) {
      expectInvalid(await send(fields), 'deliverAt');
    }
  });
});
