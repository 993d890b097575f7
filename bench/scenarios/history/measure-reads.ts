import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'undici';
import { percentilesOf, type Percentiles } from '../../figures/percentiles.ts';
import type { Bench } from '../../scenario.ts';
import type { Reads } from './page-reads.ts';

/** A gateway asks every minute since when there are days. */
const KNOWN_WITHIN_MS = 90_000;
const ASK_EVERY_MS = 1_000;

/** Measures each kind of read, one request after the other. Throws for a response that is not 200. */
export async function measureReads(
  { stack, signal, log }: Bench,
  reads: Reads,
  requests: number,
): Promise<[string, Percentiles][]> {
  const { baseUrl, apiKey } = stack.credentials;
  const pool = new Pool(baseUrl, { connections: 1 });
  const headers = { 'x-api-key': apiKey };
  const get = async (path: string): Promise<number> => {
    const { statusCode, body } = await pool.request({
      method: 'GET',
      path: `/api/v1${path}`,
      headers,
    });
    await body.dump();
    return statusCode;
  };
  try {
    await untilFound(get, reads['a message']?.() ?? '', signal);
    const measured: [string, Percentiles][] = [];
    for (const [name, pathOf] of Object.entries(reads)) {
      log(`Measuring: ${name}`);
      measured.push([name, percentilesOf(await timesOf(get, pathOf, { requests, signal }))]);
    }
    return measured;
  } finally {
    await pool.close();
  }
}

type Get = (path: string) => Promise<number>;

/** The gateway finds what lies in past days once it knows that days began before. */
async function untilFound(get: Get, path: string, signal: AbortSignal): Promise<void> {
  const endMs = performance.now() + KNOWN_WITHIN_MS;
  while ((await get(path)) !== 200) {
    if (performance.now() > endMs) throw new Error(`${path} is not found`);
    await wait(ASK_EVERY_MS, undefined, { signal });
  }
}

async function timesOf(
  get: Get,
  pathOf: () => string,
  { requests, signal }: { requests: number; signal: AbortSignal },
): Promise<number[]> {
  const tookMs: number[] = [];
  while (tookMs.length < requests && !signal.aborted) {
    const path = pathOf();
    const startedMs = performance.now();
    const status = await get(path);
    if (status !== 200) throw new Error(`GET ${path} responded with ${status}`);
    tookMs.push(performance.now() - startedMs);
  }
  return tookMs;
}
