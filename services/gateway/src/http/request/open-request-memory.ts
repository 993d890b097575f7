import { bytesOfMib } from '@posthorn/platform/memory/mebibytes.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { GatewayConfig } from '../../config.ts';
import { createRequestMemory, type RequestMemory } from './request-memory.ts';

/** Creates the memory of requests with the budget of the settings. */
export function openRequestMemory(
  { config }: ServiceContext<GatewayConfig>,
  budgets: MemoryBudgets,
): RequestMemory {
  const requestBytes = bytesOfMib(config.REQUEST_MIB);
  const memory = createRequestMemory(requestBytes);
  budgets.add('requests', requestBytes, memory.usedBytes);
  return memory;
}
