import { ConflictError, type Posthorn } from '@posthorn/client';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { messageOf } from './lease.ts';

/* What the keys of a `listen` on a terminal do. */

/** Standard input of a terminal. */
export type KeyInput = Readable & { setRawMode?: (isRaw: boolean) => unknown };

const CTRL_C = '\u0003';

export interface KeyOptions {
  input: KeyInput;
  /** By the key. */
  actions: Readonly<Record<string, () => Promise<void>>>;
  /** A terminal that passes each key on makes no signal of Ctrl-C. */
  interrupt: () => void;
  note: (text: string) => void;
}

/** Calls an action for each key that is pressed, one at a time. Returns the function that gives the terminal back. */
export function watchKeys({ input, actions, interrupt, note }: KeyOptions): () => void {
  let isBusy = false;
  const act = async (action: () => Promise<void>): Promise<void> => {
    isBusy = true;
    try {
      await action();
    } catch (error) {
      note(`That did not work: ${messageOf(error)}`);
    } finally {
      isBusy = false;
    }
  };
  const onData = (chunk: Buffer): void => {
    for (const key of chunk.toString()) {
      const action = Object.hasOwn(actions, key) ? actions[key] : undefined;
      if (key === CTRL_C) interrupt();
      else if (action && !isBusy) void act(action);
    }
  };
  input.setRawMode?.(true);
  input.on('data', onData);
  return () => {
    input.off('data', onData);
    input.setRawMode?.(false);
    // Otherwise the process would wait for more input.
    input.pause();
  };
}

/**
 * Returns whether this process has the terminal. One in the background, such as `posthorn listen 3000 &`, would be stopped by
 * the system as soon as it reads keys.
 */
export function hasTerminal(): boolean {
  if (process.platform === 'win32') return true;
  // Images for Linux may lack ps.
  if (existsSync('/proc/self/stat')) return isForeground(readFileSync('/proc/self/stat', 'utf8'));
  const args = ['-o', 'stat=', '-p', String(process.pid)];
  return spawnSync('ps', args, { encoding: 'utf8' }).stdout.includes('+');
}

/** Reads `pid (name) state parent group session terminal foreground-group …` of proc(5). */
export function isForeground(stat: string): boolean {
  const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return group === foreground;
}

/** Sends a message to the webhook once more. One that is still to be retried is not waited for: its retries end. */
export async function resendTo(
  api: Pick<Posthorn, 'messages' | 'deliveries'>,
  { webhookId, messageId }: { webhookId: string; messageId: string },
): Promise<void> {
  const { items } = await api.messages.listDeliveries(messageId);
  const delivery = items.find((each) => each.webhookId === webhookId);
  if (!delivery) throw new Error('the message went to a webhook that is gone');
  if (delivery.status === 'pending') await cancel(api, delivery.id);
  await api.deliveries.resend(delivery.id);
}

async function cancel(api: Pick<Posthorn, 'deliveries'>, deliveryId: string): Promise<void> {
  try {
    await api.deliveries.cancel(deliveryId);
  } catch (error) {
    // It has ended meanwhile.
    if (!(error instanceof ConflictError)) throw error;
  }
}
