import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { createMessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import type { DispatcherConfig } from '../config.ts';
import { createPayloadLoader } from './load-payload.ts';
import { createPayloadMemory, type PayloadMemory } from './payload-memory.ts';

export function openPayloads(
  { config, keepTrying }: ServiceContext<DispatcherConfig>,
  db: Database,
  budgets: MemoryBudgets,
): PayloadMemory {
  const cacheBytes = memoryShare('dispatcher', 'payload_cache', config.MEMORY_MIB);
  const heldBytes = memoryShare('dispatcher', 'payloads', config.MEMORY_MIB);
  const loader = createPayloadLoader(createMessageStore(db), cacheBytes, keepTrying);
  const payloads = createPayloadMemory(loader.load, heldBytes);
  budgets.add('payload_cache', cacheBytes, loader.usedBytes);
  budgets.add('payloads', heldBytes, payloads.usedBytes);
  return payloads;
}
