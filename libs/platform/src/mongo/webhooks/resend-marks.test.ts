import { beforeEach, describe, expect, test } from '@jest/globals';
import {
  createMemoryResends,
  type MemoryResends,
  sampleResend,
} from '../../../../../test/support/memory/memory-resends.ts';
import { freeOrphans } from './resend-marks.ts';

let memory: MemoryResends;

beforeEach(async () => {
  memory = createMemoryResends();
  for (const id of ['dlv_1', 'dlv_2', 'dlv_3']) memory.add(id, 'exhausted');
  await memory.resends.insert(sampleResend('rsnd_running'));
  await memory.resends.insert(sampleResend('rsnd_done', { status: 'done' }));
});

async function markBy(resendId: string, ...page: string[]): Promise<void> {
  await memory.marks.ask(sampleResend(resendId, { page }));
}

const free = async () =>
  freeOrphans(memory, await memory.marks.read('comp_a', [...memory.deliveries.keys()]));

describe('marks of resends that are over', () => {
  test('are freed when the resend is done or removed, and those of a running one stay', async () => {
    await markBy('rsnd_done', 'dlv_1');
    await markBy('rsnd_gone', 'dlv_2');
    await markBy('rsnd_running', 'dlv_3');
    expect(await free()).toBe(true);
    const states = [...memory.deliveries.values()].map(({ mark }) => mark?.state);
    expect(states).toEqual(['failed', 'failed', 'asked']);
  });

  test('need no query when no delivery is marked', async () => {
    memory.resends.findOne = () => Promise.reject(new Error('not used here'));
    expect(await free()).toBe(false);
  });
});
