import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../support/time/eventually.ts';
import { ADMIN, startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { failing, startReceiver, type Receiver } from '../../support/receivers/receiver.ts';
import { createResources, type Resources } from '../../support/api/resources.ts';
import { printedAuditEvents } from '../../support/process/printed-audit-events.ts';
import { runProgram } from '../../support/process/service-process.ts';
import { MARKER } from '../../support/stores/unreadable-records.ts';

interface List {
  matched: number;
  letters: { messageId: string | null }[];
}

describe('Dead letters of deliveries', () => {
  let posthorn: Posthorn;
  let receiver: Receiver;
  let resources: Resources;

  beforeAll(async () => {
    posthorn = await startPosthorn({ RETRY_DELAYS: '100ms' });
    receiver = await startReceiver();
    resources = createResources(posthorn.api);
  }, 120_000);

  afterAll(async () => {
    await receiver.close();
    await posthorn.stop();
  }, 60_000);

  const admin = async (...args: string[]) =>
    JSON.parse(await runProgram(ADMIN, ['dead-letters', ...args, '--json'], posthorn.env)) as List;

  it('that are exhausted are delivered by a replay once the endpoint works again', async () => {
    receiver.answerWith(failing(99));
    const { webhookId } = await posthorn.api.createTarget(receiver.url);
    const sent = await Promise.all(
      [1, 2, 3].map((n) => posthorn.api.send({ webhookId }, { n, text: MARKER })),
    );
    for (const { deliveryId } of sent) await resources.deliveryOnce('exhausted', deliveryId);
    const mine = ['--webhook', webhookId, '--reason', 'schedule_exhausted'];
    const { letters } = await eventually('the dead letters', async () => {
      const found = await admin('list', ...mine);
      return found.matched === sent.length ? found : null;
    });
    expect(new Set(letters.map(({ messageId }) => messageId))).toEqual(
      new Set(sent.map(({ messageId }) => messageId)),
    );
    expect(JSON.stringify(letters)).not.toContain(MARKER);

    receiver.answerWith((response) => response.writeHead(200).end());
    const counts = { matched: 3, republished: 0, resent: 3, skipped: {} };
    expect(await admin('replay', ...mine, '--dry-run')).toEqual({ dryRun: true, ...counts });
    const [first] = sent;
    const one = await admin('replay', '--message', first?.messageId ?? '');
    expect(one).toMatchObject({ matched: 1, resent: 1 });
    const { attempts } = await resources.deliveryOnce('delivered', first?.deliveryId ?? '');
    expect(attempts.map(({ number, resend }) => [number, resend])).toEqual([
      [1, false],
      [2, false],
      [3, true],
    ]);
    expect(await admin('replay', ...mine)).toMatchObject({ resent: 2, skipped: { delivered: 1 } });
    for (const { deliveryId, messageId } of sent) {
      await resources.deliveryOnce('delivered', deliveryId);
      expect(receiver.of(messageId)).toHaveLength(3);
    }
    const again = await admin('replay', ...mine);
    expect(again).toMatchObject({ matched: 3, resent: 0, skipped: { delivered: 3 } });
    const events = await printedAuditEvents(posthorn.env, 'dead_letters.replayed');
    // A dry run changes nothing.
    expect(events.map(({ outcome }) => outcome)).toEqual(['done', 'done', 'done']);
    expect(events[1]).toMatchObject({ companyId: null, actor: { kind: 'admin' } });
    expect(events[1]?.changes).toContainEqual({ field: 'resent', before: null, after: 2 });
  });
});
