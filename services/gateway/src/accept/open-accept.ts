import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { createAcceptMessage, type AcceptDeps, type AcceptMessage } from './accept-message.ts';
import { bytesOfMib, type GatewayConfig } from '../config.ts';

/** Step 1 with its budget; a stop waits for the inserts under way. */
export function openAccept(
  { config, lifecycle }: ServiceContext<GatewayConfig>,
  deps: Omit<AcceptDeps, 'acceptQueueBytes' | 'monotonicMs'>,
  budgets: MemoryBudgets,
): AcceptMessage['accept'] {
  const acceptQueueBytes = bytesOfMib(config.ACCEPT_QUEUE_MIB);
  const { accept, idle, usedBytes } = createAcceptMessage({
    ...deps,
    acceptQueueBytes,
    monotonicMs: () => performance.now(),
  });
  budgets.add('accept_queue', acceptQueueBytes, usedBytes);
  lifecycle.onStop('accept', idle);
  return accept;
}
