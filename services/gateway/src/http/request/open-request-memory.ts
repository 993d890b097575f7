import { bytesOfMib } from '@posthorn/platform/memory/mebibytes.ts';
import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { GatewayConfig } from '../../config.ts';
import { addressOf, createRequestMemory, type RequestMemory } from './request-memory.ts';

/** 256 of one address, with bodies of 4 KiB. */
const SIGN_INS_MIB = 4;
/** 1,536 requests of one address. */
const UNKNOWN_CALLERS_MIB = 12;

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
  const open = (part: string, mib: number, ownerOf?: typeof addressOf): RequestMemory => {
    const memory = createRequestMemory(bytesOfMib(mib), ownerOf);
    budgets.add(part, bytesOfMib(mib), memory.usedBytes);
    return memory;
  };
  return {
    memory: open('requests', config.REQUEST_MIB),
    signIns: open('sign_ins', SIGN_INS_MIB, addressOf),
    unknownCallers: open('unknown_callers', UNKNOWN_CALLERS_MIB, addressOf),
  };
}
