import { Pool } from 'undici';
import type { ReceivedAnswer } from './judge-answer.ts';
import type { WireRequest } from './wire-request.ts';

/** Sends all requests over `connections` kept-alive connections, one at a time on each. */
export async function sendAll(
  baseUrl: string,
  requests: readonly WireRequest[],
  connections: number,
  onAnswer: (request: WireRequest, answer: ReceivedAnswer) => void,
): Promise<void> {
  const pool = new Pool(baseUrl, { connections, pipelining: 1, headersTimeout: 20_000 });
  const rest = requests.values();
  const work = async (): Promise<void> => {
    for (const each of rest) onAnswer(each, await send(pool, each));
  };
  await Promise.all(Array.from({ length: connections }, work));
  await pool.close();
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
