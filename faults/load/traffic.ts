import { Posthorn } from '@posthorn/client';
import { setTimeout as wait } from 'node:timers/promises';
import type { Book } from './book.ts';
import { createClient, type Client } from './client.ts';
import { payloadOf, type Receiver } from './receiver.ts';
import type { Plan } from './plan.ts';
import { createOpenLoopSchedule } from '../../bench/load/loops.ts';

export interface Company {
  companyId: string;
  apiKey: string;
}

/** Where messages are sent to, and where they are received. */
interface Doors {
  baseUrls: readonly string[];
  companies: readonly Company[];
  receiver: Receiver;
}

/** The constant load of one round. */
export interface Traffic {
  answers: Client['answers'];
  slowestAnswerMs: () => number;
  skipped: () => number;
  /** The id of an endpoint's webhook → its number. */
  endpointOf: ReadonlyMap<string, number>;
  /** Stops sending; resolves when every response has come. */
  stop: () => Promise<void>;
  /** Ends everything at once. */
  close: () => Promise<void>;
}

interface TrafficOptions {
  stack: Doors;
  run: string;
  rate: number;
  plan: () => Plan;
  book: Book;
  signal: AbortSignal;
}

interface OpenEndpoint {
  company: Company;
  appId: string;
  webhookId: string;
  secret: string;
}

/** Every third message has an idempotency key and is repeated until it is accepted. */
const KEYED_EVERY = 3;

/** Creates the apps and webhooks of a round, opens its endpoints and starts to send. */
export async function startTraffic(options: TrafficOptions): Promise<Traffic> {
  const { stack, run, rate, plan, book, signal } = options;
  const endpoints = await openEndpoints(options);
  const secrets = endpoints.map(({ secret }) => secret);
  stack.receiver.open({ run, plan, book, secrets });
  const client = createClient({ baseUrls: stack.baseUrls, signal });
  const loop = startOpenLoop(rate, (n) => sendOne({ client, book, run, endpoints }, plan(), n));
  return {
    answers: client.answers,
    slowestAnswerMs: client.slowestMs,
    skipped: loop.skipped,
    endpointOf: new Map(endpoints.map(({ webhookId }, index) => [webhookId, index])),
    stop: loop.stop,
    async close() {
      await client.close();
      await loop.stop();
    },
  };
}

/** The endpoints of the first half belong to the first company. */
async function openEndpoints({ stack, run, plan }: TrafficOptions): Promise<OpenEndpoint[]> {
  const { companies, baseUrls, receiver } = stack;
  const count = plan().endpoints;
  const share = Math.ceil(count / companies.length);
  const opened = companies.map(async (company, index) => {
    const api = new Posthorn({ baseUrl: baseUrls[0], apiKey: company.apiKey });
    const { id: projectId } = await api.projects.create({ name: run });
    const { id: appId } = await api.apps.create({ name: run, projectId });
    const own: OpenEndpoint[] = [];
    for (
      let endpoint = index * share;
      endpoint < Math.min(count, (index + 1) * share);
      endpoint += 1
    ) {
      const url = receiver.urlOf(run, endpoint);
      const { id, secret } = await api.webhooks.create({ url, appId });
      own.push({ company, appId, webhookId: id, secret });
    }
    return own;
  });
  return (await Promise.all(opened)).flat();
}

interface Sender {
  client: Client;
  book: Book;
  run: string;
  endpoints: readonly OpenEndpoint[];
}

async function sendOne(
  { client, book, run, endpoints }: Sender,
  plan: Plan,
  n: number,
): Promise<void> {
  const target = plan.targetOf(n);
  const first = endpoints[target === 'all' ? n % endpoints.length : target];
  if (!first) throw new Error(`There is no endpoint ${target}.`);
  const { company, appId, webhookId } = first;
  const isToAll = target === 'all';
  const address = isToAll ? `"appId":"${appId}"` : `"webhookId":"${webhookId}"`;
  const sentAtMs = Date.now();
  const answer = await client.send({
    apiKey: company.apiKey,
    body: `{${address},"payload":${payloadOf(run, n)}}`,
    idempotencyKey: n % KEYED_EVERY === 0 ? `${run}-${n}` : null,
  });
  const targets = endpoints.flatMap((each, index) =>
    (isToAll ? each.appId === appId : index === target) ? index : [],
  );
  book.noteSent({ n, endpoints: targets, sentAtMs, answeredAtMs: Date.now(), answer });
}

interface OpenLoop {
  /** Returns how many messages were not sent because too many were under way. */
  skipped: () => number;
  /** Stops sending, and waits for the responses. */
  stop: () => Promise<void>;
}

/** Requests in flight at most: while no response comes for half a minute, more would only use up connections. */
const MAX_UNDER_WAY = 480;
const TICK_MS = 2;

/** Calls `send` with 0, 1, 2, … at a fixed rate, whether responses come or not. */
function startOpenLoop(ratePerSecond: number, send: (n: number) => Promise<void>): OpenLoop {
  const stopping = new AbortController();
  const state = { underWay: new Set<Promise<void>>(), skipped: 0 };
  const running = run(ratePerSecond, send, state, stopping.signal);
  return {
    skipped: () => state.skipped,
    async stop() {
      stopping.abort();
      await running;
      await Promise.all(state.underWay);
    },
  };
}

async function run(
  ratePerSecond: number,
  send: (n: number) => Promise<void>,
  state: { underWay: Set<Promise<void>>; skipped: number },
  signal: AbortSignal,
): Promise<void> {
  const startedMs = performance.now();
  const schedule = createOpenLoopSchedule(ratePerSecond, Number.MAX_SAFE_INTEGER / ratePerSecond);
  for (let n = 0; !signal.aborted;) {
    const due = schedule.dueCount(performance.now() - startedMs);
    for (; n < due; n += 1) {
      if (state.underWay.size >= MAX_UNDER_WAY) {
        state.skipped += 1;
        continue;
      }
      const sending = send(n);
      state.underWay.add(sending);
      void sending.then(() => state.underWay.delete(sending));
    }
    await wait(TICK_MS);
  }
}
