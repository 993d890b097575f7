import { deliveryContract } from '../contract/delivery-contract.ts';
import { leaseContract } from '../contract/lease-contract.ts';
import { messageCheckContract } from '../contract/message-check-contract.ts';
import { messageListContract } from '../contract/message-list-contract.ts';
import { removalContract } from '../contract/removal-contract.ts';
import { resendContract } from '../contract/resend-contract.ts';
import { resendMarkContract } from '../contract/resend-mark-contract.ts';
import { stuckDeliveryContract } from '../contract/stuck-delivery-contract.ts';
import { createMemoryDeliveries } from './memory-deliveries.ts';
import { createMemoryLeases } from './memory-leases.ts';
import { listDepsOf } from './memory-messages.ts';
import { createMemoryRemovals } from './memory-removals.ts';
import { createMemoryResends } from './memory-resends.ts';
import { createMemorySweep } from './memory-sweep.ts';

deliveryContract(() => {
  const store = createMemoryDeliveries();
  return Promise.resolve({
    store,
    read: (id) => Promise.resolve(store.stored.get(id)),
    close: () => Promise.resolve(),
  });
});

leaseContract(() => {
  const leases = createMemoryLeases();
  return Promise.resolve({
    leases,
    expire: (name) => Promise.resolve(void leases.holders.delete(name)),
    close: () => Promise.resolve(),
  });
});

messageListContract((stored) =>
  Promise.resolve({ ...listDepsOf(stored), close: () => Promise.resolve() }),
);

removalContract(() => {
  const tree = createMemoryRemovals();
  const { projects, apps, webhooks, pending, notes } = tree;
  return Promise.resolve({
    removals: tree.store,
    plant(planted) {
      for (const each of [projects, apps, webhooks, pending, notes]) each.clear();
      for (const id of planted.projects) projects.add(id);
      for (const { id, ...owner } of planted.apps) apps.set(id, owner);
      for (const { id, ...owner } of planted.webhooks) webhooks.set(id, owner);
      return Promise.resolve();
    },
    addDelivery(id, webhookId, status) {
      if (status === 'pending') pending.set(id, webhookId);
      return Promise.resolve();
    },
    pendingIds: () => Promise.resolve([...pending.keys()].sort()),
    close: () => Promise.resolve(),
  });
});

resendContract(() => {
  const memory = createMemoryResends();
  return Promise.resolve({
    resends: memory.resends,
    clear() {
      for (const each of [memory.running, memory.deliveries, memory.webhooks]) each.clear();
      return Promise.resolve();
    },
    addDelivery(id, status, { webhookId, companyId = 'comp_a', lastOutcome } = {}) {
      memory.add(id, status, 7, webhookId, lastOutcome).companyId = companyId;
      return Promise.resolve();
    },
    addWebhook: (id) => Promise.resolve(void memory.webhooks.add(id)),
    close: () => Promise.resolve(),
  });
});

resendMarkContract(() => {
  const memory = createMemoryResends();
  return Promise.resolve({
    marks: memory.marks,
    clear() {
      memory.deliveries.clear();
      return Promise.resolve();
    },
    add(id, status, companyId = 'comp_a') {
      memory.add(id, status).companyId = companyId;
      return Promise.resolve();
    },
    settle(id, isSuccess) {
      memory.settle(id, isSuccess);
      return Promise.resolve();
    },
    close: () => Promise.resolve(),
  });
});

const DAY_MS = 86_400_000;

stuckDeliveryContract(() => {
  const { stuck, deliveryStore, deliveries } = createMemorySweep(Date.now());
  return Promise.resolve({
    stuck,
    deliveries: deliveryStore,
    clear() {
      deliveries.clear();
      return Promise.resolve();
    },
    close: () => Promise.resolve(),
  });
});

messageCheckContract(() => {
  const { checks, deliveryStore, messages, keepFor } = createMemorySweep(Date.now());
  return Promise.resolve({
    checks,
    deliveries: deliveryStore,
    insert: (batch) => Promise.resolve(messages.push(...batch)),
    keepFor(days) {
      keepFor(days * DAY_MS);
      return Promise.resolve();
    },
    close: () => Promise.resolve(),
  });
});
