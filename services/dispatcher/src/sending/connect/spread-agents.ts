import { requiredAt } from '@posthorn/domain/required.ts';
import { createDeliveryAgent, type DeliveryAgent } from './delivery-agent.ts';
import type { GuardOptions } from './guarded-connect.ts';

/**
 * An undici pool tries its connections one by one to find a free one: with 300 connections to one
 * origin that took 13 % of the dispatcher's CPU. What shares an origin is spread over this many pools.
 */
const AGENTS = 16;

/** HTTP clients that share the requests to each origin. */
export interface SpreadAgents {
  /** Returns the same client for the same key, whose end must be random. */
  agentOf: (key: string) => DeliveryAgent;
  destroy: () => Promise<void>;
}

export function createSpreadAgents(guard: GuardOptions): SpreadAgents {
  const agents = Array.from({ length: AGENTS }, () => createDeliveryAgent(guard));
  return {
    agentOf: (key) => requiredAt(agents, endOf(key) % AGENTS, 'agent'),
    async destroy() {
      await Promise.all(agents.map((agent) => agent.destroy()));
    },
  };
}

/** Uses the last two characters: the last one alone has only 16 values in the base64 of a hash. */
function endOf(key: string): number {
  return key.charCodeAt(key.length - 1) + key.charCodeAt(key.length - 2);
}
