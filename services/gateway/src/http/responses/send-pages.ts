import { once } from 'node:events';
import type { Response } from 'express';

/** The parts of a list, in order. */
export type Pages = AsyncIterable<readonly unknown[]>;

/**
 * Sends a list part by part, as one array. The next part is read when the client
 * has taken the one before, so a list of any length needs the memory of one part. Rejects when a part cannot be read.
 * `onSent` is told the length of each part.
 */
export async function sendPages(
  response: Response,
  { status, message }: { status: number; message: string },
  pages: Pages,
  onSent: (length: number) => void,
): Promise<void> {
  response.status(status).type('json');
  response.write(`{"success":true,"message":${JSON.stringify(message)},"data":[`);
  let separator = '';
  for await (const page of pages) {
    if (response.destroyed) return;
    const text = page.map((each) => JSON.stringify(each)).join(',');
    if (text === '') continue;
    onSent(text.length);
    if (!response.write(separator + text)) await untilTaken(response);
    separator = ',';
  }
  response.end(']}');
}

/** Resolves when the client has taken what was written, or is gone. */
async function untilTaken(response: Response): Promise<void> {
  const ended = new AbortController();
  const either = ['drain', 'close'].map((event) => once(response, event, { signal: ended.signal }));
  try {
    if (!response.destroyed) await Promise.race(either);
  } finally {
    ended.abort();
    await Promise.allSettled(either);
  }
}

/** So many entries are an ordinary response: 1 MB of the widest webhooks. */
export const SHORT_LIST = 50;

/** Reads until it is known whether the list is a short one. That is an ordinary response. */
export async function beginPages(
  pages: Pages,
): Promise<{ first: readonly unknown[]; rest: Pages | null }> {
  const reading = pages[Symbol.asyncIterator]();
  const first: unknown[] = [];
  while (first.length <= SHORT_LIST) {
    const next = await reading.next();
    if (next.done) return { first, rest: null };
    first.push(...next.value);
  }
  return { first, rest: continued(first, reading) };
}

async function* continued(
  first: readonly unknown[],
  reading: AsyncIterator<readonly unknown[]>,
): AsyncGenerator<readonly unknown[]> {
  try {
    yield first;
    for (let next = await reading.next(); !next.done; next = await reading.next()) yield next.value;
  } finally {
    await reading.return?.();
  }
}
