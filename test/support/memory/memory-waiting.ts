import type { CancelReason } from '@posthorn/domain/delivery/delivery.ts';
import type { Hold } from '@posthorn/domain/waiting.ts';
import type {
  WaitingDelivery,
  WaitingDeliveries,
} from '@posthorn/platform/mongo/messages/waiting-deliveries.ts';
import type { HoldStates, WebhookHolders } from '@posthorn/platform/mongo/webhooks/holds.ts';

export interface MemoryWaitingDelivery extends WaitingDelivery {
  /** `follows`: waits for its order. `deferred`: released, and its attempt is put off for hours. */
  state: 'waiting' | 'follows' | 'released' | 'deferred' | 'done' | 'cancelled';
  /** Of a cancelled one. */
  reason?: CancelReason;
}

export type StoredHolders = Omit<NonNullable<WebhookHolders['webhook']>, 'companyId'>;

/** Waiting deliveries and what holds them, in memory. */
export interface MemoryWaiting {
  deliveries: Map<string, MemoryWaitingDelivery>;
  webhooks: Map<string, StoredHolders>;
  appHolds: Map<string, Hold>;
  /** Companies. */
  suspended: Set<string>;
  ofWebhook: (webhookId: string, state: MemoryWaitingDelivery['state']) => MemoryWaitingDelivery[];
  waiting: Pick<
    WaitingDeliveries,
    'page' | 'pageToCancel' | 'underWay' | 'endWait' | 'look' | 'webhooks'
  >;
  holds: HoldStates;
}

export function createMemoryWaiting(): MemoryWaiting {
  const deliveries: MemoryWaiting['deliveries'] = new Map();
  const webhooks: MemoryWaiting['webhooks'] = new Map();
  const appHolds: MemoryWaiting['appHolds'] = new Map();
  const suspended = new Set<string>();
  const ofWebhook = (
    webhookId: string,
    state: MemoryWaitingDelivery['state'],
  ): MemoryWaitingDelivery[] =>
    [...deliveries.values()].filter((each) => each.webhookId === webhookId && each.state === state);
  const pageOf = (
    all: readonly MemoryWaitingDelivery[],
    fromId: string,
    limit: number,
  ): Promise<WaitingDelivery[]> => {
    const inOrder = all.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return Promise.resolve(inOrder.filter(({ id }) => id >= fromId).slice(0, limit));
  };
  const waiting: MemoryWaiting['waiting'] = {
    page: ({ webhookId }, fromId, limit) => pageOf(ofWebhook(webhookId, 'waiting'), fromId, limit),
    pageToCancel({ webhookId }, fromId, limit) {
      const all = [...ofWebhook(webhookId, 'waiting'), ...ofWebhook(webhookId, 'follows')];
      return pageOf(all, fromId, limit);
    },
    underWay({ webhookId }, { beforeId, limit }) {
      const open = [...ofWebhook(webhookId, 'released'), ...ofWebhook(webhookId, 'deferred')];
      const before = open.filter(({ id }) => id < beforeId);
      return Promise.resolve(before.sort((a, b) => (a.id < b.id ? -1 : 1)).slice(-limit));
    },
    endWait(page) {
      for (const { id } of page) {
        const found = deliveries.get(id);
        if (found?.state === 'waiting') found.state = 'released';
      }
      return Promise.resolve();
    },
    look(released) {
      const idsIn = (state: MemoryWaitingDelivery['state']) =>
        new Set(released.flatMap(({ id }) => (deliveries.get(id)?.state === state ? [id] : [])));
      const open = new Set([...idsIn('released'), ...idsIn('deferred')]);
      return Promise.resolve({ open, heldAgain: idsIn('waiting') });
    },
    async *webhooks(companyId, ids) {
      await Promise.resolve();
      for (const webhookId of webhooks.keys()) {
        if (ids && !ids.includes(webhookId)) continue;
        if (ofWebhook(webhookId, 'waiting').length > 0) yield { companyId, webhookId };
      }
    },
  };

  const holds: MemoryWaiting['holds'] = {
    holdersOf(places) {
      const all = places.map(({ webhookId, companyId }) => {
        const webhook = webhooks.get(webhookId);
        const appHeld = appHolds.get(webhook?.appId ?? '') ?? null;
        const isSuspended = suspended.has(companyId);
        const stored = webhook ? { companyId, ...webhook } : null;
        return [webhookId, { webhook: stored, appHeld, isSuspended }] as const;
      });
      return Promise.resolve(new Map(all));
    },
    holdOf({ id, kind }) {
      if (kind === 'app') return Promise.resolve(appHolds.get(id) ?? null);
      const webhook = webhooks.get(id);
      return Promise.resolve(webhook && !webhook.disabled ? webhook.held : null);
    },
    isSuspended: (id) => Promise.resolve(suspended.has(id)),
    clearEnded({ id }, nowMs) {
      const held = webhooks.get(id)?.held ?? appHolds.get(id);
      const isEnded = typeof held?.untilMs === 'number' && held.untilMs <= nowMs;
      if (isEnded) Object.assign(webhooks.get(id) ?? {}, { held: null });
      if (isEnded) appHolds.delete(id);
      return Promise.resolve(isEnded);
    },
    webhooksOfApp({ id }, afterId) {
      const own = [...webhooks].filter(([, { appId }]) => appId === id).map(([each]) => each);
      return Promise.resolve(own.filter((each) => each > afterId));
    },
  };

  return { deliveries, webhooks, appHolds, suspended, ofWebhook, waiting, holds };
}
