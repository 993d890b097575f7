import { describe, expect, it } from '@jest/globals';
import { pause } from './pause.ts';

describe('a pause', () => {
  it('ends after its time', async () => {
    await expect(pause(1, new AbortController().signal)).resolves.toBeUndefined();
  });

  it('ends when its signal is aborted, before or meanwhile', async () => {
    const stopping = new AbortController();
    const paused = pause(600_000, stopping.signal);
    stopping.abort();
    await expect(paused).resolves.toBeUndefined();
    await expect(pause(600_000, stopping.signal)).resolves.toBeUndefined();
  });
});
