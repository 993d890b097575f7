import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'undici';
import type { ValidateFunction } from 'ajv/dist/2020.js';
import type { CompileSchema, Operation } from '../api/api-document.ts';
import type { WireRequest } from './wire-request.ts';

export interface ReceivedAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** Returns how a response violates the document, in words; empty when it does not. */
type Judge = (request: WireRequest, answer: ReceivedAnswer) => string[];

const REQUEST_ID = /^[A-Za-z0-9._-]{8,128}$/;

/** Refusals that a valid request can get because of a foreign id, an earlier request or the state of a webhook. */
const MAY_BE_REFUSED = new Set([404, 409, 422]);

export function createJudge(compile: CompileSchema): Judge {
  const checks = new Map<string, ValidateFunction>();

  function checkOf({ id, answers }: Operation, status: number): ValidateFunction | null {
    const documented = answers.get(status);
    if (!documented) return null;
    const key = `${id} ${status}`;
    const check = checks.get(key) ?? compile(documented.schema);
    checks.set(key, check);
    return check;
  }

  return (request, { status, headers, text }) => {
    const check = checkOf(request.operation, status);
    const body = parsed(text);
    return [
      ...(status >= 500 ? ['a fault of the server'] : []),
      ...(check ? [] : [`status ${status} is not documented`]),
      ...(check && !check(body) ? [`not by the schema: ${JSON.stringify(check.errors)}`] : []),
      ...headerProblems(request, headers, body),
      ...verdictProblems(request, status),
    ];
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function headerProblems(
  request: WireRequest,
  headers: ReceivedAnswer['headers'],
  body: unknown,
): string[] {
  const sent = request.headers['X-Request-Id'] ?? '';
  const got = String(headers['x-request-id']);
  const { requestId = got } = (body ?? {}) as { requestId?: string };
  return [
    ...(/^application\/json\b/.test(String(headers['content-type'])) ? [] : ['content type']),
    ...(REQUEST_ID.test(got) && requestId === got ? [] : ['X-Request-Id']),
    ...(REQUEST_ID.test(sent) && sent !== got ? ['X-Request-Id is not the one sent'] : []),
  ];
}

function verdictProblems({ what, usesOwnIds, operation }: WireRequest, status: number): string[] {
  if (what !== 'valid') return status < 400 ? ['accepted, though the document forbids it'] : [];
  if (status < 400) return [];
  // What a change may contain depends on the stored webhook; the document can say so only in prose.
  if (operation.id === 'updateWebhook' && status === 400) return [];
  if (!MAY_BE_REFUSED.has(status)) return ['refused, though the document allows it'];
  const isGone = status === 404 && usesOwnIds && operation.method !== 'DELETE';
  return isGone ? ['not found, though it is there'] : [];
}

/** How often a request is sent again. */
const MAX_REPEATS = 5;

/**
 * Sends all requests over `connections` kept-alive connections, one at a time on each. A request that gets
 * 503 with Retry-After is sent again after that time, as the API document asks. Resolves to how often that was.
 */
export async function sendAll(
  baseUrl: string,
  requests: readonly WireRequest[],
  connections: number,
  onAnswer: (request: WireRequest, answer: ReceivedAnswer) => void,
): Promise<number> {
  const pool = new Pool(baseUrl, { connections, pipelining: 1, headersTimeout: 60_000 });
  const rest = requests.values();
  let sentAgain = 0;
  const work = async (): Promise<void> => {
    for (const each of rest) {
      let answer = await send(pool, each);
      for (let repeats = 0; repeats < MAX_REPEATS; repeats += 1) {
        const retryAfterMs = retryAfterMsOf(answer);
        if (retryAfterMs === null) break;
        sentAgain += 1;
        await wait(retryAfterMs);
        answer = await send(pool, each);
      }
      onAnswer(each, answer);
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  await pool.close();
  return sentAgain;
}

function retryAfterMsOf({ status, headers }: ReceivedAnswer): number | null {
  const seconds = Number(headers['retry-after']);
  return status === 503 && seconds > 0 ? seconds * 1_000 : null;
}

async function send(pool: Pool, request: WireRequest): Promise<ReceivedAnswer> {
  const { method, path, headers, body } = request;
  const answer = await pool.request({
    method,
    path,
    headers,
    body,
  });
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() };
}
