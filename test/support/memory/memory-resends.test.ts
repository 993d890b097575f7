import { resendContract } from '../contract/resend-contract.ts';
import { resendMarkContract } from '../contract/resend-mark-contract.ts';
import { createMemoryResends } from './memory-resends.ts';

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
