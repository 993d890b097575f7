import type { Attempt, Delivery } from '@posthorn/domain/delivery/delivery.ts';
import { deliveryIdOf, firstIdAt, timeMsOf } from '@posthorn/domain/ids.ts';
import type { Message } from '@posthorn/domain/message.ts';
import type { StuckDelivery } from '@posthorn/domain/delivery/stuck-delivery.ts';
import type { DeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import type { StuckDeliveries } from '@posthorn/platform/mongo/messages/delivery-queries.ts';
import {
  CHECK_SHARES,
  type MessageChecks,
  shareOf,
} from '@posthorn/platform/mongo/messages/message-checks.ts';
import { countingIds, sampleMessage } from '../samples/sample-message.ts';
import { createMemoryDeliveries } from './memory-deliveries.ts';

/** The stores of messages and deliveries in memory, as the sweep of stuck deliveries uses them. */
export interface MemorySweep {
  checks: MessageChecks;
  stuck: StuckDeliveries;
  deliveryStore: DeliveryStore;
  /** Adds a message. With `next`, adds a delivery too, which is pending after one attempt. */
  add: (next?: Pick<StuckDelivery, 'nextAttemptAtMs'>) => Message;
  messages: Message[];
  deliveries: Map<string, Delivery>;
  /** The newest position of all shares. */
  checkedTo: () => string;
  keepFor: (retentionMs: number) => void;
}

const attempt: Attempt = {
  id: 'att_1',
  number: 1,
  trigger: 'first',
  outcome: 'http_5xx',
  statusCode: 500,
  response: null,
  responseHeaders: [],
  startedAtMs: 1,
  durationMs: 1,
};

export function createMemorySweep(nowMs: number): MemorySweep {
  const messages: Message[] = [];
  const { stored, ...deliveryStore } = createMemoryDeliveries();
  const newId = countingIds();
  const position: Position = {
    checkedTo: new Map(),
    completeToMs: new Map(),
    retentionMs: Infinity,
  };
  return {
    messages,
    deliveries: stored,
    deliveryStore,
    checkedTo: () => [...position.checkedTo.values()].sort().at(-1) ?? '',
    keepFor: (ms) => {
      position.retentionMs = ms;
    },
    add(next) {
      const message = sampleMessage(newId('msg'));
      const { id: messageId, companyId, appId, createdAtMs } = message;
      messages.push(message);
      if (!next) return message;
      const id = deliveryIdOf(messageId, 'wh_1');
      stored.set(id, {
        id,
        messageId,
        webhookId: 'wh_1',
        companyId,
        appId,
        createdAtMs,
        status: 'pending',
        reason: null,
        attemptCount: 1,
        attempts: [attempt],
        nextAttemptAtMs: next.nextAttemptAtMs,
        waiting: null,
        waitingSinceMs: null,
        updatedAtMs: createdAtMs,
      });
      return message;
    },
    checks: checksOf(messages, stored, position, nowMs),
    stuck: stuckIn(stored),
  };
}

/** By share. */
interface Position {
  checkedTo: Map<number, string>;
  completeToMs: Map<number, number>;
  retentionMs: number;
}

function checksOf(
  messages: readonly Message[],
  stored: ReadonlyMap<string, Delivery>,
  position: Position,
  nowMs: number,
): MessageChecks {
  const checkedToMs = (share: number): number | null => {
    const { checkedTo, completeToMs } = position;
    const known = checkedTo.get(share);
    return Math.max(completeToMs.get(share) ?? 0, known ? timeMsOf(known) : 0) || null;
  };
  return {
    positions: () =>
      Promise.resolve({
        nowMs,
        checkedToMs: Array.from({ length: CHECK_SHARES }, (_, share) => checkedToMs(share)),
      }),
    checkedTo: (share) => Promise.resolve(position.checkedTo.get(share) ?? ''),
    async *pagesOf({ share, afterId, beforeMs, maxMessages, maxTargets }) {
      await Promise.resolve();
      const beforeId = firstIdAt('msg', beforeMs);
      const all = messages.filter(({ id }) => id > afterId && id < beforeId);
      const last = all.reduce<string | null>((max, { id }) => (max && max > id ? max : id), null);
      const found = all
        .filter(({ id }) => shareOf(id) === share)
        .sort((a, b) => (a.id < b.id ? -1 : 1));
      while (found.length > 0) {
        let targets = 0;
        const end = found.findIndex((message, index) => {
          targets += message.targets.length;
          return index === maxMessages || (index > 0 && targets > maxTargets);
        });
        const page = found.splice(0, end < 0 ? found.length : end);
        yield { messages: page, readTo: page.at(-1)?.id ?? afterId };
      }
      if (last !== null && shareOf(last) !== share) yield { messages: [], readTo: last };
    },
    recordedAmong: (ids) => Promise.resolve(new Set(ids.filter((id) => stored.has(id)))),
    retentionMs: () => Promise.resolve(position.retentionMs),
    markChecked(share, id) {
      position.checkedTo.set(share, id);
      return Promise.resolve();
    },
    markComplete(share, atMs) {
      position.completeToMs.set(share, atMs);
      return Promise.resolve();
    },
  };
}

function stuckIn(stored: Map<string, Delivery>): StuckDeliveries {
  const isStuck = ({ status, waiting }: Delivery) => status === 'pending' && waiting === null;
  const pending = () => [...stored.values()].filter(isStuck);
  const pageOf = (found: readonly Delivery[], limit: number): Promise<StuckDelivery[]> =>
    Promise.resolve(
      found.slice(0, limit).map((each) => ({ ...each, attempts: each.attempts.slice(-1) })),
    );
  const dueAtMs = ({ nextAttemptAtMs }: Delivery): number => nextAttemptAtMs ?? Infinity;
  return {
    findOverdue(beforeMs, limit) {
      const overdue = pending().filter((each) => dueAtMs(each) < beforeMs);
      return pageOf(
        overdue.sort((a, b) => dueAtMs(a) - dueAtMs(b)),
        limit,
      );
    },
    findUnended(beforeMs, limit) {
      const unended = pending().filter(({ nextAttemptAtMs }) => nextAttemptAtMs === null);
      return pageOf(
        unended.filter(({ updatedAtMs }) => updatedAtMs < beforeMs),
        limit,
      );
    },
    markSwept(swept, atMs) {
      for (const { id, attemptCount, nextAttemptAtMs } of swept) {
        const found = stored.get(id);
        if (!found || !isStuck(found) || found.attemptCount !== attemptCount) continue;
        const dueMs = nextAttemptAtMs === null ? null : atMs;
        stored.set(id, { ...found, nextAttemptAtMs: dueMs, updatedAtMs: atMs });
      }
      return Promise.resolve();
    },
  };
}
