import { setTimeout as wait } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { Credentials } from '../../../tools/local-stack/supervisor/development-company.ts';
import { type Percentiles, percentilesOf } from '../../measure/figures.ts';
import { createOpenLoopSchedule } from '../../load/loops.ts';

/** An ordinary request of a company, sent at a fixed rate. */
interface Ordinary {
  method: 'GET' | 'POST';
  path: string;
  body: string | null;
  /** The status that it should get. */
  status: number;
}

export interface ProbeFigures extends Percentiles {
  /** How many got another status, by status. */
  refused: Record<string, number>;
}

/** Name of an ordinary request → how long its responses took, in milliseconds from when it was due. */
export type ProbeResult = Record<string, ProbeFigures>;

export interface Probe {
  run: (seconds: number) => Promise<ProbeResult>;
  close: () => Promise<void>;
}

const RATE_PER_SECOND = 20;
const TICK_MS = 1;

/** Sends each ordinary request 20 times a second, whether responses come or not. */
export function createProbe(
  { baseUrl, apiKey }: Credentials,
  webhookId: string,
  signal: AbortSignal,
): Probe {
  const dispatcher = new Agent({ connections: 100 });
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };

  async function send({ method, path, body }: Ordinary): Promise<string> {
    const options = { dispatcher, method, headers, body };
    try {
      const response = await request(`${baseUrl}${path}`, options);
      await response.body.dump();
      return String(response.statusCode);
    } catch {
      return 'no response';
    }
  }

  return {
    async run(seconds) {
      const measured = Object.entries(requestsOf(webhookId)).map(async ([name, ordinary]) => {
        const figures = await measure(() => send(ordinary), ordinary.status, seconds, signal);
        return [name, figures] as const;
      });
      return Object.fromEntries(await Promise.all(measured));
    },
    close: () => dispatcher.close(),
  };
}

const read = (path: string): Ordinary => ({ method: 'GET', path, body: null, status: 200 });

function requestsOf(webhookId: string): Record<string, Ordinary> {
  const body = JSON.stringify({ webhookId, payload: { text: 'x'.repeat(1_000) } });
  return {
    'read a webhook': read(`/webhooks/${webhookId}`),
    'send a message': { method: 'POST', path: '/webhook-messages', body, status: 202 },
    'list webhooks': read('/webhooks'),
  };
}

async function measure(
  send: () => Promise<string>,
  wantedStatus: number,
  seconds: number,
  signal: AbortSignal,
): Promise<ProbeFigures> {
  const schedule = createOpenLoopSchedule(RATE_PER_SECOND, seconds);
  const startedMs = performance.now();
  const tookMs: number[] = [];
  const refused: Record<string, number> = {};
  const sending: Promise<void>[] = [];
  const sendOne = async (n: number): Promise<void> => {
    const status = await send();
    tookMs.push(performance.now() - startedMs - schedule.intendedMs(n));
    if (status !== String(wantedStatus)) refused[status] = (refused[status] ?? 0) + 1;
  };
  while (sending.length < schedule.total && !signal.aborted) {
    const due = schedule.dueCount(performance.now() - startedMs);
    while (sending.length < due) sending.push(sendOne(sending.length));
    await wait(TICK_MS);
  }
  await Promise.all(sending);
  return { ...percentilesOf(tookMs), refused };
}
