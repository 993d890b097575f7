import { type Message, Posthorn } from '@posthorn/client';
import { type Receiver, startReceiver } from '../../test/support/receivers/receiver.ts';
import type { Round, Scene } from '../round.ts';
import { CLOCKED, type Clocked, USUAL_LAYOUT } from '../stack/fleet.ts';

const HOUR_MS = 3_600_000;

function jumping(name: string, jumpMs: number): Round {
  return {
    name: `F13-${name}`,
    summary: `the clock of dispatchers and retry services jumps an hour ${name} and returns`,
    promise: '0 lost, 0 duplicates, each retry is made once, and none is early',
    seconds: [20],
    layout: { ...USUAL_LAYOUT, hasOwnClocks: true },
    // A consumer that waits for the head of a delay topic to be due reads the clock once a minute.
    recoverWithinMs: () => 100_000,
    async inject({ clocks, pause, say, seconds }) {
      const moved = [clocks?.dispatcher, clocks?.retry];
      for (const clock of moved) clock?.setAheadBy(jumpMs);
      say(`the clock is an hour ${name}`);
      try {
        await pause(seconds * 1_000);
      } finally {
        for (const clock of moved) clock?.setAheadBy(0);
      }
      say('the clock is right again');
      return { endedAtMs: Date.now() };
    },
  };
}

/** A time that a client gives is so far ahead. */
const AHEAD_MS = 4_000;
/** How long after it what waits for it may begin. */
const LATE_MS = 30_000;
/** When the machine reads a request earlier than the service has sent it: never, but clocks have whole milliseconds. */
const READ_EARLY_MS = 1;

/**
 * Times that clients give are those of the database in every service, so that it does not matter whose clock is wrong
 * (docs/decisions/0019-clocks-that-are-wrong.md).
 */
const GIVEN_TIMES: Round = {
  name: 'F18',
  summary:
    'the clock of one service at a time is an hour ahead, then behind, while clients give times: deliverAt, expiresAt, the end of a hold, a cancellation',
  promise:
    'nothing is delivered or expires early, what is over is not delivered, a cancellation ends what was before it and nothing else',
  seconds: [60],
  layout: { ...USUAL_LAYOUT, hasOwnClocks: true },
  recoverWithinMs: () => 100_000,
  async inject(scene) {
    const { clocks, say } = scene;
    const receiver = await startReceiver();
    const findings: string[] = [];
    try {
      for (const service of CLOCKED) {
        for (const [name, jumpMs] of [
          ['ahead', HOUR_MS],
          ['behind', -HOUR_MS],
        ] as const) {
          const moved = `the clock of the ${service} an hour ${name}`;
          clocks?.[service].setAheadBy(jumpMs);
          say(moved);
          const found = await wrongTimes(scene, receiver, service);
          findings.push(...found.map((each) => `${moved}: ${each}`));
          clocks?.[service].setAheadBy(0);
        }
      }
    } finally {
      for (const service of CLOCKED) clocks?.[service].setAheadBy(0);
      await receiver.close();
    }
    return { endedAtMs: Date.now(), findings };
  },
};

interface Client {
  api: Posthorn;
  receiver: Receiver;
  /** Creates a webhook of an app of its own. */
  newWebhook: () => Promise<string>;
}

/** Does what a client does with times, and returns what went wrong. */
async function wrongTimes(scene: Scene, receiver: Receiver, service: Clocked): Promise<string[]> {
  const { baseUrls, companies } = scene;
  const api = new Posthorn({ baseUrl: baseUrls[0], apiKey: companies[0]?.apiKey });
  const { id: projectId } = await api.projects.create({ name: `clock of ${service}` });
  const client: Client = {
    api,
    receiver,
    async newWebhook() {
      const { id: appId } = await api.apps.create({ name: 'times', projectId });
      return (await api.webhooks.create({ url: receiver.url, appId })).id;
    },
  };
  const found = await Promise.all([
    deliverAt(client),
    notExpired(client),
    expiredOnHold(client, scene),
    endOfHold(client),
    cancellation(client),
  ]);
  return found.flat();
}

async function deliverAt({ api, receiver, newWebhook }: Client): Promise<string[]> {
  const webhookId = await newWebhook();
  const dueMs = Date.now() + AHEAD_MS;
  const { id } = await api.messages.send({ webhookId, deliverAt: isoOf(dueMs), payload: {} });
  return arrivedFrom(dueMs, await ended(api, id), receiver, 'deliverAt');
}

async function notExpired({ api, newWebhook }: Client): Promise<string[]> {
  const expiresAt = isoOf(Date.now() + HOUR_MS / 2);
  const webhookId = await newWebhook();
  const { id } = await api.messages.send({ webhookId, expiresAt, payload: {} });
  const { status } = await ended(api, id);
  return status === 'delivered' ? [] : [`expiresAt of in half an hour: ${status}`];
}

async function expiredOnHold({ api, receiver, newWebhook }: Client, scene: Scene) {
  const webhookId = await newWebhook();
  await api.webhooks.hold(webhookId, { reason: 'a fault' });
  const expiresAt = isoOf(Date.now() + AHEAD_MS / 2);
  const { id } = await api.messages.send({ webhookId, expiresAt, payload: {} });
  await scene.pause(AHEAD_MS);
  await api.webhooks.resume(webhookId);
  const { status } = await ended(api, id);
  const isRight = status === 'cancelled' && receiver.of(id).length === 0;
  return isRight ? [] : [`expiresAt that is over when the hold ends: ${status}`];
}

async function endOfHold({ api, receiver, newWebhook }: Client): Promise<string[]> {
  const webhookId = await newWebhook();
  const untilMs = Date.now() + AHEAD_MS;
  await api.webhooks.hold(webhookId, { until: isoOf(untilMs) });
  const { id } = await api.messages.send({ webhookId, payload: {} });
  return arrivedFrom(untilMs, await ended(api, id), receiver, 'until of a hold');
}

async function cancellation({ api, newWebhook }: Client): Promise<string[]> {
  const webhookId = await newWebhook();
  const later = { webhookId, deliverAt: isoOf(Date.now() + HOUR_MS / 2), payload: {} };
  const before = await api.messages.send(later);
  await api.webhooks.cancelPending(webhookId);
  const after = await api.messages.send({ webhookId, payload: {} });
  const statuses = [(await ended(api, before.id)).status, (await ended(api, after.id)).status];
  return statuses.join() === 'cancelled,delivered'
    ? []
    : [`before and after a cancellation: ${statuses.join(', ')}`];
}

function arrivedFrom(
  fromMs: number,
  { id, status }: Message,
  receiver: Receiver,
  what: string,
): string[] {
  const [first] = receiver.of(id);
  if (status !== 'delivered' || !first) return [`${what}: ${status}`];
  const earlyMs = fromMs - first.atMs;
  return earlyMs > READ_EARLY_MS ? [`${what}: ${earlyMs} ms early`] : [];
}

/** Returns the message as it is at the end, or when it should have ended long ago. */
async function ended(api: Posthorn, id: string): Promise<Message> {
  const timeoutMs = AHEAD_MS + LATE_MS;
  try {
    return await api.messages.waitUntilFinal(id, { timeoutMs });
  } catch {
    return api.messages.get(id);
  }
}

const isoOf = (atMs: number): string => new Date(atMs).toISOString();

export const CLOCKS: readonly Round[] = [
  jumping('ahead', HOUR_MS),
  jumping('back', -HOUR_MS),
  GIVEN_TIMES,
];
