import { createByteCache } from '@posthorn/platform/memory/coalescing-cache.ts';
import { parentPort } from 'node:worker_threads';
import { type CheckPayload, type CheckResult, compileSchema } from './check-payload.ts';

/* The worker thread that checks payloads: see payload-checks.ts, which stops it when a check takes too long. */

/** Asks for checks. `schemas` has those that the worker may not have. */
export interface CheckRequest {
  schemas: readonly { id: string; text: string }[];
  checks: readonly { schemaId: string; payload: string }[];
}

/** The processor time of the thread until now is in every answer: the next request begins with it. */
export type CheckAnswer = { cpuMs: number } & (
  | { kind: 'ready' }
  | { kind: 'checked'; results: CheckResult[] }
  /** Nothing was checked, because the worker does not have these schemas any more. */
  | { kind: 'missing'; schemaIds: string[] }
);

/** A parsed schema as objects, for each character of its text, by estimate. */
const BYTES_OF_A_CHAR = 20;
const SCHEMA_BYTES = 2_000;

interface Parsed {
  check: CheckPayload;
  bytes: number;
}

const parsed = createByteCache<Parsed>({
  maxBytes: 16 * 2 ** 20,
  maxPieces: 10_000,
  sizeOf: ({ bytes }) => bytes,
});

function parse(text: string): Parsed {
  const bytes = SCHEMA_BYTES + text.length * BYTES_OF_A_CHAR;
  try {
    return { check: compileSchema(text), bytes };
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    return { check: () => ({ fault }), bytes };
  }
}

function answerTo({ schemas, checks }: CheckRequest): CheckAnswer {
  for (const { id, text } of schemas) if (!parsed.get(id)) parsed.set(id, parse(text));
  const found = checks.map(({ schemaId }) => parsed.get(schemaId));
  const schemaIds = checks.flatMap(({ schemaId }, n) => (found[n] ? [] : [schemaId]));
  if (schemaIds.length > 0) return { kind: 'missing', schemaIds, cpuMs: cpuMs() };
  const results = checks.map(({ payload }, n) => found[n]?.check(payload) ?? { problems: [] });
  return { kind: 'checked', results, cpuMs: cpuMs() };
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

parentPort?.on('message', (request: CheckRequest) => {
  parentPort?.postMessage(answerTo(request));
});
parentPort?.postMessage({ kind: 'ready', cpuMs: cpuMs() } satisfies CheckAnswer);
