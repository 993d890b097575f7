import { removalContract } from '../contract/removal-contract.ts';
import { createMemoryRemovals } from './memory-removals.ts';

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
