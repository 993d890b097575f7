import { attemptIdOf, deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { SettledDelivery } from '@posthorn/domain/delivery/settlement.ts';
import { countingIds } from '../samples/sample-message.ts';

/** Makes a new delivery that is pending after the failed attempt `number`. */
export type NewSettled = (number?: number, changes?: Partial<SettledDelivery>) => SettledDelivery;

/** `firstMs`: when the messages were created, a millisecond apart. MongoDB removes what has expired. */
export function createSettledSamples(firstMs = Date.now()): NewSettled {
  const newId = countingIds(firstMs);
  return (number = 1, changes = {}) => {
    const messageId = newId('msg');
    const id = deliveryIdOf(messageId, 'wh_1');
    return {
      id,
      messageId,
      webhookId: 'wh_1',
      companyId: 'comp_a',
      appId: null,
      status: 'pending',
      reason: null,
      nextAttemptAtMs: 5_000,
      createdAtMs: firstMs,
      updatedAtMs: 2_000,
      attempt: {
        id: attemptIdOf(id, number),
        number,
        trigger: number === 1 ? 'first' : 'retry',
        outcome: 'http_5xx',
        statusCode: 500,
        response: 'no',
        responseHeaders: [{ key: 'server', value: 's' }],
        startedAtMs: 1_500,
        durationMs: 20,
      },
      ...changes,
    };
  };
}

/** The delivery after the attempt that follows. */
export function nextOf(
  { id, messageId, attempt, ...rest }: SettledDelivery,
  changes: Partial<SettledDelivery> = {},
): SettledDelivery {
  if (!attempt) throw new Error(`${id} has no attempt`);
  const number = attempt.number + 1;
  const next = { ...attempt, id: attemptIdOf(id, number), number, trigger: 'retry' as const };
  return { ...rest, id, messageId, attempt: next, ...changes };
}

/** The same delivery, whose attempt has succeeded. */
export function succeeded(settled: SettledDelivery): SettledDelivery {
  const { attempt } = settled;
  if (!attempt) throw new Error(`${settled.id} has no attempt`);
  const delivered = { status: 'delivered', reason: null, nextAttemptAtMs: null } as const;
  return { ...settled, ...delivered, attempt: { ...attempt, outcome: 'success', statusCode: 200 } };
}
