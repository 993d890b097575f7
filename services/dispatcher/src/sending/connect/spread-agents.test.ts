import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createIdFactory } from '@posthorn/domain/ids/ids.ts';
import { STRICT_EGRESS } from '@posthorn/domain/egress/egress-rules.ts';
import { createHash, randomBytes } from 'node:crypto';
import { createHostResolver } from './resolve-host.ts';
import { createSpreadAgents, type SpreadAgents } from './spread-agents.ts';

let agents: SpreadAgents;

beforeEach(() => {
  agents = createSpreadAgents({
    policy: STRICT_EGRESS,
    connectTimeoutMs: 5_000,
    hosts: createHostResolver(),
    proxy: null,
    onRefused: () => undefined,
    onOpened: () => undefined,
  });
});
afterEach(() => agents.destroy());

const newId = createIdFactory({ nowMs: () => 1_700_000_000_000, randomBytes });
const hash = (text: string): string => createHash('sha256').update(text).digest('base64url');

describe('the HTTP clients of an origin', () => {
  test.each([
    ['ids of webhooks', () => newId('wh')],
    ['keys of access tokens', (nth: number) => hash(String(nth))],
  ])('are all used by %s, and evenly', (_what, keyOf) => {
    const used = new Map<unknown, number>();
    for (let nth = 0; nth < 3_200; nth += 1) {
      const agent = agents.agentOf(keyOf(nth));
      used.set(agent, (used.get(agent) ?? 0) + 1);
    }
    expect(used.size).toBe(16);
    expect(Math.max(...used.values())).toBeLessThan(400);
  });

  test('are always the same for one key', () => {
    expect(agents.agentOf('wh_ab')).toBe(agents.agentOf('wh_ab'));
    expect(agents.agentOf('wh_ab')).not.toBe(agents.agentOf('wh_ac'));
  });
});
