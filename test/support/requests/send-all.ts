import { setTimeout as wait } from 'node:timers/promises';
import { Pool } from 'undici';
import type { ReceivedAnswer } from './judge-answer.ts';
import type { WireRequest } from './wire-request.ts';

/**
 * Sends all requests over `connections` kept-alive connections, one at a time on each. A request that gets
 * 503 with Retry-After is sent again after that time, as the API document asks. Resolves to how many were.
 */
export async function sendAll(
  baseUrl: string,
  requests: readonly WireRequest[],
  connections: number,
  onAnswer: (request: WireRequest, answer: ReceivedAnswer) => void,
): Promise<number> {
  const pool = new Pool(baseUrl, { connections, pipelining: 1, headersTimeout: 20_000 });
  const rest = requests.values();
  let sentAgain = 0;
  const work = async (): Promise<void> => {
    for (const each of rest) {
      const answer = await send(pool, each);
      const retryAfterMs = retryAfterMsOf(answer);
      if (retryAfterMs === null) {
        onAnswer(each, answer);
        continue;
      }
      sentAgain += 1;
      await wait(retryAfterMs);
      onAnswer(each, await send(pool, each));
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
