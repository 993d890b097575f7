import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { GatewayConfig } from '../../config.ts';
import { addressOf, createRequestMemory, type RequestMemory } from './request-memory.ts';

/** 256 of one address, with bodies of 4 KiB. */
const SIGN_INS_BYTES = 4 * 1_048_576;
/** 1,536 requests of one address. */
const UNKNOWN_CALLERS_BYTES = 12 * 1_048_576;

export interface HeldByRequests {
  /** What requests of known companies hold. */
  memory: RequestMemory;
  /** What sign-ins hold; client addresses share it. Apart: who sends half of them delays no request with a key. */
  signIns: RequestMemory;
  /** What requests hold that wait for the look-up of their key; client addresses share it. */
  unknownCallers: RequestMemory;
}

/** Creates the memory of requests, of known companies with the budget of the settings. */
export function openRequestMemory(
  { config }: Pick<ServiceContext<GatewayConfig>, 'config'>,
  budgets: MemoryBudgets,
): HeldByRequests {
  const open = (part: string, bytes: number, ownerOf?: typeof addressOf): RequestMemory => {
    const memory = createRequestMemory(bytes, ownerOf);
    budgets.add(part, bytes, memory.usedBytes);
    return memory;
  };
  return {
    memory: open('requests', memoryShare('gateway', 'requests', config.MEMORY_MIB)),
    signIns: open('sign_ins', SIGN_INS_BYTES, addressOf),
    unknownCallers: open('unknown_callers', UNKNOWN_CALLERS_BYTES, addressOf),
  };
}
