import { setTimeout as wait } from 'node:timers/promises';
import type { Receivers } from './receivers.ts';
import type { Target } from './target.ts';

export interface Load {
  target: Target;
  webhookIds: readonly string[];
  receivers: Receivers;
}

export interface LoadResult {
  accepted: number;
  refused: number;
  /** Accepted, and not arrived within the patience after the end. */
  missing: number;
  acceptMs: number[];
  endToEndMs: number[];
}

interface Sent {
  id: string;
  /** When it was meant to be sent, by `performance.now`. */
  startedMs: number;
}

const PATIENCE_MS = 20_000;

/** So many clients, each sending its next message when the last one was answered. */
export async function closedLoop(
  load: Load,
  { connections, seconds }: { connections: number; seconds: number },
): Promise<LoadResult> {
  const tally = newTally();
  const endMs = performance.now() + seconds * 1_000;
  const client = async (n: number): Promise<void> => {
    for (let i = n; performance.now() < endMs; i += 1)
      await sendOne(load, tally, i, performance.now());
  };
  await Promise.all(Array.from({ length: connections }, (_, n) => client(n)));
  return finish(load, tally);
}

/** A fixed rate, whatever the answers do. */
export async function openLoop(
  load: Load,
  { ratePerSecond, seconds }: { ratePerSecond: number; seconds: number },
): Promise<LoadResult> {
  const tally = newTally();
  const startMs = performance.now();
  const sending: Promise<void>[] = [];
  for (let i = 0; i < ratePerSecond * seconds; i += 1) {
    const dueMs = startMs + (i * 1_000) / ratePerSecond;
    const restMs = dueMs - performance.now();
    if (restMs > 0) await wait(restMs);
    sending.push(sendOne(load, tally, i, dueMs));
  }
  await Promise.all(sending);
  return finish(load, tally);
}

interface Tally {
  sent: Sent[];
  acceptMs: number[];
  refused: number;
}

function newTally(): Tally {
  return { sent: [], acceptMs: [], refused: 0 };
}

async function sendOne(load: Load, tally: Tally, n: number, startedMs: number): Promise<void> {
  const webhookId = load.webhookIds[n % load.webhookIds.length] ?? '';
  const id = await load.target.send(webhookId);
  if (id === null) {
    tally.refused += 1;
    return;
  }
  tally.acceptMs.push(performance.now() - startedMs);
  tally.sent.push({ id, startedMs });
}

async function finish(
  { receivers }: Load,
  { sent, acceptMs, refused }: Tally,
): Promise<LoadResult> {
  const { arrivedAtMs } = receivers;
  const endMs = performance.now() + PATIENCE_MS;
  while (sent.some(({ id }) => !arrivedAtMs.has(id)) && performance.now() < endMs) await wait(50);
  const endToEndMs = sent.flatMap(({ id, startedMs }) => {
    const atMs = arrivedAtMs.get(id);
    return atMs === undefined ? [] : [atMs - startedMs];
  });
  const missing = sent.length - endToEndMs.length;
  return { accepted: sent.length, refused, missing, acceptMs, endToEndMs };
}
