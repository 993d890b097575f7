import { once } from 'node:events';
import { connect } from 'node:net';
import { setPriority } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { makeApiKey } from '@posthorn/platform/mongo/companies/companies.ts';
import { Agent, request } from 'undici';

/** The order of the attack: its only argument, in JSON. */
export interface AttackOrder {
  baseUrl: string;
  companyId: string;
  apiKey: string;
  /** An app with wide webhooks. */
  appId: string;
  /** One of them. */
  webhookId: string;
  /** An app with as many webhooks as one message may go to. */
  manyTargetsAppId: string;
  /** Webhooks with deliveries that a resend sends again. */
  failedWebhookIds: readonly string[];
}

/** The report at its end: the number of responses by kind of request and status. */
export type AttackReport = Record<string, Record<string, number>>;

interface Kind {
  /** Clients that each send the next request as soon as they have the response to the last one. */
  clients: number;
  /** Called for each request. */
  pathOf: () => string;
  /** A GET without one. */
  body?: string;
  /** Called for each request, instead of the company's own key. */
  apiKeyOf?: () => string;
}

/** The largest body is 256 KiB. */
const PAYLOAD_CHARACTERS = 250_000;
const SLOW_BODIES = 200;
const SLOW_BYTE_EVERY_MS = 500;

function kindsOf(order: AttackOrder): Record<string, Kind> {
  const { appId, webhookId, manyTargetsAppId, failedWebhookIds } = order;
  const get = (clients: number, path: string): Kind => ({ clients, pathOf: () => path });
  const message = (clients: number, to: object): Kind => {
    const payload = { text: 'x'.repeat(PAYLOAD_CHARACTERS) };
    return { ...get(clients, '/webhook-messages'), body: JSON.stringify({ ...to, payload }) };
  };
  let resends = 0;
  const nextResend = (): string => {
    resends += 1;
    return `/api/v1/webhooks/${failedWebhookIds[resends % failedWebhookIds.length] ?? ''}/resend-failed`;
  };
  const since = JSON.stringify({ since: new Date(0).toISOString() });
  return {
    'long lists': get(20, '/webhooks?limit=1000'),
    'lists of projects': get(10, '/api/v1/projects?limit=1000'),
    searches: get(10, '/api/v1/find-webhooks?text=in-no-webhook'),
    'lists of messages': get(10, '/api/v1/webhook-messages?limit=100'),
    'large messages': message(20, { webhookId }),
    'messages to wide webhooks': message(5, { appId }),
    'messages to most targets': message(5, { appId: manyTargetsAppId }),
    resends: { clients: 4, body: since, pathOf: nextResend },
    // With a right checksum: only a look-up shows that the key does not exist.
    'wrong keys': {
      ...get(10, '/webhooks'),
      apiKeyOf: () => makeApiKey({ newId: () => '', nowMs: Date.now }, '', '').key,
    },
  };
}

/** Attacks until the standard input ends, or for ten minutes; prints the report. */
async function attack(order: AttackOrder): Promise<void> {
  // In reality the clients run elsewhere: here they must not take CPU from the services.
  setPriority(10);
  const end = new AbortController();
  const agent = new Agent({ connections: 500, headersTimeout: 30_000, bodyTimeout: 30_000 });
  const report: AttackReport = {};
  const working = Object.entries(kindsOf(order)).flatMap(([name, kind]) => {
    const counts: Record<string, number> = (report[name] = {});
    return Array.from({ length: kind.clients }, async () => {
      while (!end.signal.aborted) {
        const status = await send(order, kind, agent);
        counts[status] = (counts[status] ?? 0) + 1;
      }
    });
  });
  const slow = Array.from({ length: SLOW_BODIES }, () => sendSlowly(order, end.signal));
  process.stdin.resume();
  await Promise.race([once(process.stdin, 'end'), wait(600_000, null, { ref: false })]);
  end.abort();
  await Promise.all([...working, ...slow]);
  await agent.close();
  console.log(JSON.stringify(report));
}

async function send(
  { baseUrl, companyId, apiKey }: AttackOrder,
  { pathOf, body, apiKeyOf = () => apiKey }: Kind,
  dispatcher: Agent,
): Promise<string> {
  const headers = {
    'x-api-key': apiKeyOf(),
    companyid: companyId,
    'content-type': 'application/json',
  };
  const method = body === undefined ? 'GET' : 'POST';
  try {
    const response = await request(`${baseUrl}${pathOf()}`, {
      dispatcher,
      method,
      headers,
      body: body ?? null,
    });
    // Read to its end, as a client does; dump() would hang up after 128 KiB.
    await response.body.forEach(() => undefined);
    return String(response.statusCode);
  } catch {
    return 'no response';
  }
}

/** Sends a body byte by byte, and begins again when the gateway ends it. */
async function sendSlowly({ baseUrl, apiKey }: AttackOrder, signal: AbortSignal): Promise<void> {
  const { hostname, port } = new URL(baseUrl);
  while (!signal.aborted) {
    const socket = connect(Number(port), hostname).on('error', () => undefined);
    socket.resume();
    socket.write(
      `POST /webhook-messages HTTP/1.1\r\nHost: ${hostname}\r\nx-api-key: ${apiKey}\r\n` +
        'content-type: application/json\r\ncontent-length: 200000\r\n\r\n',
    );
    const isOver = (): boolean => signal.aborted || socket.destroyed;
    while (!isOver()) {
      socket.write('{');
      await wait(SLOW_BYTE_EVERY_MS);
    }
    socket.destroy();
  }
}

await attack(JSON.parse(process.argv[2] ?? '{}') as AttackOrder);
