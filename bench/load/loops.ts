import { setTimeout as wait } from 'node:timers/promises';

/** What became of one message. */
export type Sending = { id: string } | { refusedWith: string };

export interface Load {
  /** Sends a message to the endpoint with this number. */
  send: (endpoint: number) => Promise<Sending>;
  /** The number of endpoints. */
  endpoints: number;
  /** Returns the endpoint of the n-th message. By default messages go round all endpoints. */
  endpointOf?: (n: number) => number;
  /** Ends the loops early. */
  signal: AbortSignal;
}

/** One accepted message; times by `performance.now`. */
export interface Sent {
  id: string;
  endpoint: number;
  intendedAtMs: number;
  /** When the generator actually sent it. */
  sentAtMs: number;
  acceptedAtMs: number;
}

export interface LoadRecord {
  startedAtMs: number;
  /** When the last response was received. */
  endedAtMs: number;
  sent: Sent[];
  /** How many were not accepted, by status. */
  refused: Record<string, number>;
}

/** The resolution of timers: messages due in the same millisecond are sent together. */
const TICK_MS = 1;

interface ClosedLoop {
  connections: number;
  /** Ends after this many seconds, or after this many messages, whichever comes first. */
  seconds?: number;
  messages?: number;
}

/**
 * Runs this many clients, each of which sends its next message when it has the response to the last
 * one.
 */
export async function closedLoop(
  load: Load,
  { connections, seconds = Infinity, messages = Infinity }: ClosedLoop,
): Promise<LoadRecord> {
  const record = newRecord();
  const endMs = record.startedAtMs + seconds * 1_000;
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < messages && performance.now() < endMs && !load.signal.aborted) {
      const n = next++;
      await sendOne(load, record, n, performance.now());
    }
  };
  await Promise.all(Array.from({ length: connections }, client));
  return ended(record);
}

/** Where batches go. */
export interface BatchLoad extends Pick<Load, 'endpoints' | 'signal'> {
  /** Sends a message to each of these endpoints in one request. */
  sendBatch: (endpoints: readonly number[]) => Promise<Sending[]>;
  /** Messages of a request. */
  size: number;
}

interface BatchLoop {
  connections: number;
  seconds: number;
  /** How often each client sends at most, in milliseconds from one request to the next; 0 for at once. */
  everyMs?: number;
}

/** As `closedLoop`, with many messages in each request. They go round all endpoints. */
export async function closedBatches(
  { sendBatch, size, endpoints, signal }: BatchLoad,
  { connections, seconds, everyMs = 0 }: BatchLoop,
): Promise<LoadRecord> {
  const record = newRecord();
  const endMs = record.startedAtMs + seconds * 1_000;
  let next = 0;
  const client = async (_: unknown, n: number): Promise<void> => {
    if (everyMs > 0) await wait((n * everyMs) / connections);
    while (performance.now() < endMs && !signal.aborted) {
      const from = next;
      next += size;
      const targets = Array.from({ length: size }, (_each, index) => (from + index) % endpoints);
      const sentAtMs = performance.now();
      const sendings = await sendBatch(targets);
      for (const [index, endpoint] of targets.entries()) {
        const sending = sendings[index] ?? { refusedWith: 'no result' };
        note(record, sending, { endpoint, intendedAtMs: sentAtMs, sentAtMs });
      }
      const restMs = sentAtMs + everyMs - performance.now();
      if (restMs > 0) await wait(restMs);
    }
  };
  await Promise.all(Array.from({ length: connections }, client));
  return ended(record);
}

const BATCHES_AT_ONCE = 4;

/** Sends this many messages to the first endpoint, as fast as they are accepted; those that are refused, again. */
export async function sendMany(
  { sendBatch, size, signal }: Omit<BatchLoad, 'endpoints'>,
  count: number,
): Promise<void> {
  let left = count;
  const sendAll = async (_: number, length: number): Promise<void> => {
    const sent = await sendBatch(Array<number>(length).fill(0));
    left -= sent.filter((each) => 'id' in each).length;
  };
  while (left > 0 && !signal.aborted) {
    await inWorkers(left, { size, atOnce: BATCHES_AT_ONCE, signal }, sendAll);
  }
}

export interface OpenLoop {
  ratePerSecond: number;
  seconds: number;
}

/**
 * Sends at a fixed rate, whether responses come or not. Latencies count from the intended send time, so that messages
 * delayed by a stall of Posthorn or of the generator are counted with that delay (no coordinated omission).
 */
export async function openLoop(load: Load, loop: OpenLoop): Promise<LoadRecord> {
  const record = newRecord();
  const schedule = createOpenLoopSchedule(loop.ratePerSecond, loop.seconds);
  const sending: Promise<void>[] = [];
  while (sending.length < schedule.total && !load.signal.aborted) {
    const due = schedule.dueCount(performance.now() - record.startedAtMs);
    for (let n = sending.length; n < due; n += 1)
      sending.push(sendOne(load, record, n, record.startedAtMs + schedule.intendedMs(n)));
    await wait(TICK_MS);
  }
  await Promise.all(sending);
  return ended(record);
}

function newRecord(): LoadRecord {
  return { startedAtMs: performance.now(), endedAtMs: 0, sent: [], refused: {} };
}

const ended = (record: LoadRecord): LoadRecord => ({ ...record, endedAtMs: performance.now() });

async function sendOne(
  { send, endpoints, endpointOf = (each) => each % endpoints }: Load,
  record: LoadRecord,
  n: number,
  intendedAtMs: number,
): Promise<void> {
  const endpoint = endpointOf(n);
  const sentAtMs = performance.now();
  note(record, await send(endpoint), { endpoint, intendedAtMs, sentAtMs });
}

function note(
  { sent, refused }: LoadRecord,
  sending: Sending,
  of: Omit<Sent, 'id' | 'acceptedAtMs'>,
): void {
  if ('id' in sending) sent.push({ id: sending.id, ...of, acceptedAtMs: performance.now() });
  else refused[sending.refusedWith] = (refused[sending.refusedWith] ?? 0) + 1;
}

/** When each message of an open loop is to be sent, in milliseconds from its start. */
export function createOpenLoopSchedule(ratePerSecond: number, seconds: number) {
  const total = Math.round(ratePerSecond * seconds);
  const intervalMs = 1_000 / ratePerSecond;
  return {
    total,
    intendedMs: (n: number) => n * intervalMs,
    /** Returns how many messages should have been sent after this time: the first one is due at 0. */
    dueCount: (elapsedMs: number): number =>
      elapsedMs < 0 ? 0 : Math.min(total, Math.floor(elapsedMs / intervalMs) + 1),
  };
}

interface Pages {
  size: number;
  atOnce: number;
  signal?: AbortSignal | undefined;
}

/** Divides the numbers from 0 to below `count` into pages of this size, and works on some of them at once. */
export async function inWorkers(
  count: number,
  { size, atOnce, signal }: Pages,
  work: (from: number, length: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count && signal?.aborted !== true) {
      const from = next;
      next = Math.min(count, from + size);
      await work(from, next - from);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
