import { createHash } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { Posthorn } from '../src/index.ts';

/** One of 100 million sends has 16 faults in a row, when three of ten requests have one. */
const MAX_RETRIES = 15;

export interface Sends {
  /** The API, or a proxy before it. */
  baseUrl: string;
  apiKey: string;
  appId: string;
  sends: number;
  /** How many sends run at the same time. */
  atOnce: number;
  timeoutMs: number;
  onProgress?: (sent: number) => void;
}

/** Sends messages whose `externalId` is `send-` and their number, from 0. Throws when a send fails. */
export async function sendMany(options: Sends): Promise<void> {
  const { baseUrl, apiKey, appId, sends, atOnce, timeoutMs, onProgress } = options;
  const client = new Posthorn({ baseUrl, apiKey, timeoutMs, maxRetries: MAX_RETRIES });
  let next = 0;
  let sent = 0;
  const sendNext = async (): Promise<void> => {
    while (next < sends) {
      const number = next;
      next += 1;
      await client.messages.send({ appId, externalId: `send-${number}`, payload: { number } });
      sent += 1;
      onProgress?.(sent);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, sendNext));
}

export interface CountingApi {
  baseUrl: string;
  /** How many messages were accepted with each number. */
  accepted: Uint8Array;
  close: () => Promise<void>;
}

/**
 * Starts an API on loopback that accepts messages as Posthorn does: once for each `Idempotency-Key`, with 409 while the
 * first request with a key runs. Its memory does not grow, so that what the client keeps can be seen.
 */
export async function startCountingApi(sends: number): Promise<CountingApi> {
  const accepted = new Uint8Array(sends);
  /** A hash of the key with which each number was accepted. */
  const keys = new Uint32Array(sends);
  const running = new Set<string>();

  async function accept(key: string, body: string, response: ServerResponse): Promise<void> {
    const { number } = (JSON.parse(body) as { payload: { number: number } }).payload;
    if (running.has(key)) {
      answer(response, 409, { success: false, message: '', code: 'idempotency_key_running' });
      return;
    }
    if (keys[number] !== hashOf(key)) {
      running.add(key);
      await wait(1);
      accepted[number] = (accepted[number] ?? 0) + 1;
      keys[number] = hashOf(key);
      running.delete(key);
    }
    answer(response, 202, { success: true, message: '', data: { id: `msg_${number}` } });
  }

  const server = createServer((request, response) => {
    const key = String(request.headers['idempotency-key']);
    text(request)
      .then((body) => accept(key, body, response))
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    accepted,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '0' });
  response.end(JSON.stringify(body));
}

const hashOf = (key: string): number => createHash('sha256').update(key).digest().readUInt32LE();
