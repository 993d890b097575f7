import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { readStackDir } from './settings.ts';

interface Received {
  headers: Record<string, string>;
  body: string;
}

interface Created {
  id: string;
  secret: string;
  deliveries: { id: string }[];
}

interface Delivery {
  status: string;
  nextAttemptAt: string | null;
  attempts: { number: number; outcome: string; statusCode: number | null; createdAt: string }[];
}

const STEPS = 8;
/** The first retry of the default schedule is due after 5 s. */
const WAIT_TIMEOUT_MS = 30_000;
let step = 0;

function printStep(text: string): void {
  step += 1;
  console.log(`${String(step).padStart(2)}/${STEPS}  ${text}`);
}

/** Throws unless the condition holds; the demo then exits with code 1. */
function expect(condition: boolean, what: string): void {
  if (!condition) throw new Error(`The demo failed. Expected: ${what}`);
}

function readCredentials(): { baseUrl: string; apiKey: string } {
  const path = join(readStackDir(process.env), 'credentials.json');
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as { baseUrl: string; apiKey: string };
  } catch {
    throw new Error('No running Posthorn found. Run npm start in another terminal first.');
  }
}

async function call<T>(method: string, path: string, body?: object): Promise<T> {
  const { baseUrl, apiKey } = readCredentials();
  const response = await fetch(baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: body ? JSON.stringify(body) : null,
  }).catch(() => {
    throw new Error(`Cannot connect to ${baseUrl}. Run npm start in another terminal first.`);
  });
  const envelope = (await response.json()) as { success: boolean; message: string; data: T };
  expect(envelope.success, `${method} ${path} succeeds, but it failed: ${envelope.message}`);
  return envelope.data;
}

/** Starts an endpoint as a customer would run it. It fails the first request of each message with `failFirst`. */
async function startReceiver() {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    void readBody(request).then((body) => {
      received.push({ headers: request.headers as Record<string, string>, body });
      const sameMessage = received.filter(
        ({ headers }) => headers['webhook-id'] === request.headers['webhook-id'],
      );
      const isFailing = body.includes('"failFirst":true') && sameMessage.length === 1;
      response.writeHead(isFailing ? 503 : 200).end(isFailing ? 'try later' : 'thanks');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/webhooks`, received, server };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

async function poll<T>(what: string, find: () => Promise<T | undefined> | T | undefined) {
  const deadlineMs = Date.now() + WAIT_TIMEOUT_MS;
  for (;;) {
    const found = await find();
    if (found !== undefined) return found;
    expect(Date.now() < deadlineMs, `${what} within ${WAIT_TIMEOUT_MS / 1_000} s`);
    await wait(50);
  }
}

function verifySignatures({ headers, body }: Received, secret: string): void {
  new Webhook(secret).verify(body, headers);
  printStep('verified  by the standardwebhooks package (webhook-signature)');
  const expected = createHmac('sha256', secret).update(body).digest('hex');
  expect(
    headers['x-service-signature'] === expected,
    'X-Service-Signature is the HMAC SHA-256 of the payload',
  );
  printStep('verified  by HMAC SHA-256 of the raw body (X-Service-Signature)');
}

async function waitForStatus(id: string, status: string): Promise<Delivery> {
  return poll(`delivery ${id} is ${status}`, async () => {
    const delivery = await call<Delivery>('GET', `/api/v1/deliveries/${id}`);
    return delivery.status === status ? delivery : undefined;
  });
}

async function send(webhookId: string, payload: object) {
  const message = await call<Created>('POST', '/api/v1/webhook-messages', { webhookId, payload });
  return { messageId: message.id, deliveryId: message.deliveries[0]?.id ?? '' };
}

async function runDemo({
  url,
  received,
}: Awaited<ReturnType<typeof startReceiver>>): Promise<void> {
  const requestsOf = (messageId: string): Received[] =>
    received.filter(({ headers }) => headers['webhook-id'] === messageId);
  const project = await call<Created>('POST', '/api/v1/projects', { name: 'Demo' });
  const app = await call<Created>('POST', '/api/v1/apps', {
    name: 'A customer',
    projectId: project.id,
  });
  const webhook = await call<Created>('POST', '/api/v1/webhooks', { url, appId: app.id });
  printStep(`created   project, app and webhook to ${url}`);

  const good = await send(webhook.id, { event: 'order.paid', amount: 4200 });
  printStep(`accepted  ${good.messageId}`);
  const first = await poll('the delivery arrives', () => requestsOf(good.messageId)[0]);
  await waitForStatus(good.deliveryId, 'delivered');
  printStep(`delivered ${first.body}`);
  verifySignatures(first, webhook.secret);

  const bad = await send(webhook.id, { event: 'order.shipped', failFirst: true });
  const failed = await poll('an attempt is recorded', async () => {
    const delivery = await call<Delivery>('GET', `/api/v1/deliveries/${bad.deliveryId}`);
    return delivery.attempts.length > 0 ? delivery : undefined;
  });
  expect(failed.attempts[0]?.statusCode === 503, 'the first attempt failed with 503');
  printStep(
    `failed    attempt 1 of ${bad.messageId}: 503, next attempt at ${failed.nextAttemptAt ?? 'none'}`,
  );
  const retried = await waitForStatus(bad.deliveryId, 'delivered');
  expect(retried.attempts.length === 2, 'two attempts are recorded');
  printStep(`retried   attempt 2 delivered at ${retried.attempts[1]?.createdAt ?? ''}`);
  printStep('done      every step succeeded');
}

const receiver = await startReceiver();
try {
  await runDemo(receiver);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  receiver.server.close();
  receiver.server.closeAllConnections();
}
