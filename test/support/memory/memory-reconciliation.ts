import type { Attempt } from '@posthorn/domain/delivery.ts';
import { deliveryIdOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/deliveries/deliveries.ts';
import type { MessageChecks } from '@posthorn/platform/mongo/messages/message-checks.ts';
import type {
  StuckDeliveries,
  StuckDelivery,
} from '@posthorn/platform/mongo/deliveries/stuck-deliveries.ts';
import { countingIds, sampleMessage } from '../samples/sample-message.ts';

/** Messages and deliveries in memory, as far as the reconciler reads and writes them. */
export interface MemoryReconciliation {
  checks: MessageChecks;
  stuck: StuckDeliveries;
  insertAll: DeliveryStore['insertAll'];
  /** A message; its delivery is recorded, and pending after one attempt, when its next one is given. */
  add: (next?: Pick<StuckDelivery, 'nextAttemptAtMs'>) => Message;
  messages: Message[];
  deliveries: Map<string, StuckDelivery>;
  checkedTo: () => string;
  keepFor: (retentionMs: number) => void;
}

const attempt = { number: 1, outcome: 'http_5xx', startedAtMs: 1, durationMs: 1 } as Attempt;

export function createMemoryReconciliation(nowMs: number): MemoryReconciliation {
  const messages: Message[] = [];
  const deliveries = new Map<string, StuckDelivery>();
  const newId = countingIds();
  let checkedTo = '';
  let retentionMs = Infinity;

  const insert = (settled: Parameters<DeliveryStore['insertAll']>[0][number]): void => {
    const { attempt: made, ...rest } = settled;
    const attempts = made ? [made] : [];
    deliveries.set(rest.id, { ...rest, attempts, attemptCount: attempts.length });
  };
  const pendingWhere = (matches: (each: StuckDelivery) => boolean): StuckDelivery[] =>
    [...deliveries.values()].filter((each) => each.status === 'pending' && matches(each));

  return {
    messages,
    deliveries,
    checkedTo: () => checkedTo,
    keepFor: (ms) => {
      retentionMs = ms;
    },
    add(next) {
      const message = sampleMessage(newId('msg'));
      const { id: messageId, companyId, appId, createdAtMs } = message;
      messages.push(message);
      const id = deliveryIdOf(messageId, 'wh_1');
      const ref = { id, messageId, webhookId: 'wh_1', companyId, appId, createdAtMs };
      const pending = { status: 'pending', reason: null, updatedAtMs: createdAtMs } as const;
      if (next) insert({ ...ref, ...pending, attempt, ...next });
      return message;
    },
    checks: {
      begin: () => Promise.resolve({ nowMs, checkedTo }),
      pageOf: ({ afterId, limit }) =>
        Promise.resolve(messages.filter(({ id }) => id > afterId).slice(0, limit)),
      recordedAmong: (ids) => Promise.resolve(new Set(ids.filter((id) => deliveries.has(id)))),
      retentionMs: () => Promise.resolve(retentionMs),
      noteChecked: (id) => {
        checkedTo = id;
        return Promise.resolve();
      },
    },
    stuck: {
      findOverdue: (beforeMs, limit) => {
        const found = pendingWhere(({ nextAttemptAtMs: at }) => at !== null && at < beforeMs);
        return Promise.resolve(found.slice(0, limit));
      },
      findUnended: (beforeMs, limit) => {
        const found = pendingWhere((each) => each.nextAttemptAtMs === null);
        return Promise.resolve(found.filter((each) => each.updatedAtMs < beforeMs).slice(0, limit));
      },
      noteDriven: (driven, atMs) => {
        for (const each of driven) {
          const nextAttemptAtMs = each.nextAttemptAtMs === null ? null : atMs;
          deliveries.set(each.id, { ...each, nextAttemptAtMs, updatedAtMs: atMs });
        }
        return Promise.resolve();
      },
    },
    insertAll: (missing) => {
      missing.forEach(insert);
      return Promise.resolve(new Set());
    },
  };
}
