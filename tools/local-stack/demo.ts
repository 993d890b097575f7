import { ConnectionError, type Delivery, Posthorn } from '@posthorn/client';
import { companyTopicOf } from '@posthorn/domain/ingest.ts';
import { topicNames } from '@posthorn/domain/records/topics.ts';
import { createKafkaClient } from '@posthorn/platform/kafka/connect.ts';
import { readTopic } from '@posthorn/platform/kafka/read-topic.ts';
import { readReject, type StoredReject } from '@posthorn/platform/records/ingest-rejects.ts';
import { parseConfig } from '@posthorn/platform/service/config.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { settings } from '@posthorn/platform/service/settings.ts';
import type { Kafka } from 'kafkajs';
import { createHmac, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { z } from 'zod';
import { readStackDir } from './settings.ts';
import { findAddresses } from './supervisor/stack-file.ts';

interface Received {
  headers: Record<string, string>;
  body: string;
}

const STEPS = 10;
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

function readCredentials(): { baseUrl: string; companyId: string; apiKey: string } {
  const path = join(readStackDir(process.env), 'credentials.json');
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ReturnType<typeof readCredentials>;
  } catch {
    throw new Error('No running Posthorn found. Run npm start in another terminal first.');
  }
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

async function waitForStatus(
  { deliveries }: Posthorn,
  id: string,
  status: string,
): Promise<Delivery> {
  return poll(`delivery ${id} is ${status}`, async () => {
    const delivery = await deliveries.get(id);
    return delivery.status === status ? delivery : undefined;
  });
}

async function send({ messages }: Posthorn, webhookId: string, payload: object) {
  const message = await messages.send({ webhookId, payload });
  return { messageId: message.id, deliveryId: message.deliveries[0]?.id ?? '' };
}

const { TOPIC_PREFIX } = settings.kafka;
const { TOPIC_PREFIX: prefix } = parseConfig('demo', z.object({ TOPIC_PREFIX }), process.env);
const silent = createLogger('demo', 'silent');

/** The topic of the company, whose records become its messages. */
interface CompanyTopic {
  kafka: Kafka;
  topic: string;
}

/** Makes the topic, unless it is there. It is found within ten seconds. */
async function openCompanyTopic(): Promise<CompanyTopic> {
  const brokers = findAddresses(process.env).kafkaBrokers.split(',');
  const kafka = createKafkaClient('posthorn-demo', { brokers }, silent);
  const topic = companyTopicOf(prefix, readCredentials().companyId);
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: 1, replicationFactor: 1 }] });
  await admin.disconnect();
  return { kafka, topic };
}

async function produce({ kafka, topic }: CompanyTopic, value: string, webhookId: string) {
  const producer = kafka.producer();
  await producer.connect();
  const headers = { 'posthorn-webhook-id': webhookId };
  const [stored] = await producer.send({ topic, acks: -1, messages: [{ value, headers }] });
  await producer.disconnect();
  return Number(stored?.baseOffset);
}

async function findReject(
  { kafka, topic }: CompanyTopic,
  offset: number,
): Promise<StoredReject | undefined> {
  const found: StoredReject[] = [];
  await readTopic(kafka, {
    topic: topicNames(prefix, [], []).ingestRejected,
    groupId: `${prefix}demo-${randomUUID()}`,
    logger: silent,
    visit: (record) => Promise.resolve(void found.push(readReject(record))),
  });
  return found.find(({ place }) => place?.topic === topic && place.offset === offset);
}

async function showIngestion(
  companyTopic: CompanyTopic,
  webhook: { id: string; secret: string },
  received: readonly Received[],
): Promise<void> {
  const { topic } = companyTopic;
  const value = `{ "event": "order.refunded", "demo": "${randomUUID()}" }`;
  await produce(companyTopic, value, webhook.id);
  const delivered = await poll('a record of the topic arrives', () =>
    received.find(({ body }) => body === value),
  );
  new Webhook(webhook.secret).verify(delivered.body, delivered.headers);
  printStep(`ingested  a record of ${topic}, delivered and verified as it was written`);

  const offset = await produce(companyTopic, 'no JSON', webhook.id);
  const reject = await poll('the bad record is rejected', () => findReject(companyTopic, offset));
  printStep(`rejected  the next record: ${reject.code}: ${reject.message}`);
}

async function runDemo({
  url,
  received,
}: Awaited<ReturnType<typeof startReceiver>>): Promise<void> {
  const posthorn = new Posthorn(readCredentials());
  const requestsOf = (messageId: string): Received[] =>
    received.filter(({ headers }) => headers['webhook-id'] === messageId);
  const companyTopic = await openCompanyTopic();
  const project = await posthorn.projects.create({ name: 'Demo' });
  const app = await posthorn.apps.create({ name: 'A customer', projectId: project.id });
  const webhook = await posthorn.webhooks.create({ url, appId: app.id });
  printStep(`created   project, app and webhook to ${url}`);

  const good = await send(posthorn, webhook.id, { event: 'order.paid', amount: 4200 });
  printStep(`accepted  ${good.messageId}`);
  const first = await poll('the delivery arrives', () => requestsOf(good.messageId)[0]);
  await waitForStatus(posthorn, good.deliveryId, 'delivered');
  printStep(`delivered ${first.body}`);
  verifySignatures(first, webhook.secret);

  const bad = await send(posthorn, webhook.id, { event: 'order.shipped', failFirst: true });
  const failed = await poll('an attempt is recorded', async () => {
    const delivery = await posthorn.deliveries.get(bad.deliveryId);
    return delivery.attempts.length > 0 ? delivery : undefined;
  });
  expect(failed.attempts[0]?.statusCode === 503, 'the first attempt failed with 503');
  printStep(
    `failed    attempt 1 of ${bad.messageId}: 503, next attempt at ${failed.nextAttemptAt ?? 'none'}`,
  );
  const retried = await waitForStatus(posthorn, bad.deliveryId, 'delivered');
  expect(retried.attempts.length === 2, 'two attempts are recorded');
  printStep(`retried   attempt 2 delivered at ${retried.attempts[1]?.createdAt ?? ''}`);
  await showIngestion(companyTopic, webhook, received);
  printStep('done      every step succeeded');
}

const receiver = await startReceiver();
try {
  await runDemo(receiver);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  if (error instanceof ConnectionError) console.error('Run npm start in another terminal first.');
  process.exitCode = 1;
} finally {
  receiver.server.close();
  receiver.server.closeAllConnections();
}
