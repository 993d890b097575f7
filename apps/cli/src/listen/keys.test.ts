import { describe, expect, it } from '@jest/globals';
import { ConflictError } from '@posthorn/client';
import { PassThrough } from 'node:stream';
import { eventually } from '../../../../test/support/time/eventually.ts';
import { isForeground, resendTo, watchKeys } from './keys.ts';

function createKeyboard() {
  const modes: boolean[] = [];
  const input = Object.assign(new PassThrough(), {
    setRawMode: (isRaw: boolean) => modes.push(isRaw),
  });
  return { input, modes };
}

describe('the keys of a terminal', () => {
  it('call their action, one at a time, and Ctrl-C interrupts', async () => {
    const { input, modes } = createKeyboard();
    const calls: string[] = [];
    const pressed = Promise.withResolvers<undefined>();
    const release = watchKeys({
      input,
      actions: {
        r: async () => {
          calls.push('r');
          await pressed.promise;
        },
      },
      interrupt: () => calls.push('interrupt'),
      note: (text) => calls.push(text),
    });
    input.write('xrr\u0003');
    await eventually('the interruption', () => calls.length > 1);
    expect([calls, modes]).toEqual([['r', 'interrupt'], [true]]);
    pressed.resolve(undefined);
    await pressed.promise;
    await eventually('another call', () => {
      input.write('r');
      return calls.length > 2;
    });
    release();
    expect([modes, input.isPaused()]).toEqual([[true, false], true]);
  });

  it('note a failure, and go on', async () => {
    const { input } = createKeyboard();
    const notes: string[] = [];
    watchKeys({
      input,
      actions: { s: () => Promise.reject(new Error('no network')) },
      interrupt: () => undefined,
      note: (text) => notes.push(text),
    });
    input.write('s');
    await eventually('a note', () => notes.length === 1);
    expect(notes).toEqual(['That did not work: no network']);
    await eventually('another one', () => {
      input.write('s');
      return notes.length > 1;
    });
  });
});

it('are read in the foreground only', () => {
  expect(isForeground('17 (a) b) S 1 17 9 34816 17 4194304')).toBe(true);
  expect(isForeground('17 (node) S 1 17 9 34816 9 4194304')).toBe(false);
});

describe('a resend', () => {
  /** The API with one delivery. */
  function createApi(status: string, { isCancelRefused = false } = {}) {
    const calls: string[] = [];
    const failure = { status: 409, code: 'not_pending', message: '', requestId: null };
    const api = {
      messages: {
        listDeliveries: () => Promise.resolve({ items: [{ id: 'd1', webhookId: 'w1', status }] }),
      },
      deliveries: {
        cancel: async (id: string) => {
          calls.push(`cancel ${id}`);
          await Promise.resolve();
          if (isCancelRefused) throw new ConflictError(failure);
        },
        resend: (id: string) => Promise.resolve(calls.push(`resend ${id}`)),
      },
    };
    return { calls, api: api as unknown as Parameters<typeof resendTo>[0] };
  }

  const message = { messageId: 'm1', webhookId: 'w1' };

  it('is that of the delivery to the webhook, whose retries end before', async () => {
    const delivered = createApi('delivered');
    await resendTo(delivered.api, message);
    expect(delivered.calls).toEqual(['resend d1']);
    const pending = createApi('pending');
    await resendTo(pending.api, message);
    expect(pending.calls).toEqual(['cancel d1', 'resend d1']);
  });

  it('is made of a delivery that ended meanwhile', async () => {
    const { api, calls } = createApi('pending', { isCancelRefused: true });
    await resendTo(api, message);
    expect(calls).toEqual(['cancel d1', 'resend d1']);
  });

  it('fails for a message that went to another webhook', async () => {
    const { api } = createApi('delivered');
    await expect(resendTo(api, { ...message, webhookId: 'w2' })).rejects.toThrow('that is gone');
  });
});
