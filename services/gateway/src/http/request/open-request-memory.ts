import { bytesOfMib } from '@posthorn/platform/memory/mebibytes.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { GatewayConfig } from '../../config.ts';
import { addressOf, createRequestMemory, type RequestMemory } from './request-memory.ts';

/** 2,048 requests of one address that wait for the look-up of their key, or 1,024 sign-ins that are being received. */
const UNKNOWN_CALLERS_MIB = 16;

export interface HeldByRequests {
  /** What requests of known companies hold. */
  memory: RequestMemory;
  /** What requests hold before their company is known; client addresses share it. */
  unknownCallers: RequestMemory;
}

/** Creates the memory of requests, of known companies with the budget of the settings. */
export function openRequestMemory(
  { config }: Pick<ServiceContext<GatewayConfig>, 'config'>,
  budgets: MemoryBudgets,
): HeldByRequests {
  const knownBytes = bytesOfMib(config.REQUEST_MIB);
  const unknownBytes = bytesOfMib(UNKNOWN_CALLERS_MIB);
  const memory = createRequestMemory(knownBytes);
  const unknownCallers = createRequestMemory(unknownBytes, addressOf);
  budgets.add('requests', knownBytes, memory.usedBytes);
  budgets.add('unknown_callers', unknownBytes, unknownCallers.usedBytes);
  return { memory, unknownCallers };
}
