import { type MadeAttempt, type ListedMessage, Posthorn } from '@posthorn/client';
import {
  type Evidence,
  type Sent,
  arrivalsByDelivery,
  type Arrival,
  type RecordedAttempt,
  deliveryKey,
  type ShownDelivery,
} from './audit/evidence.ts';
import type { Plan } from './load/plan.ts';
import type { Traffic } from './load/traffic.ts';
import type { Injected, Scene } from './round.ts';
import { DELAYS_MS } from './stack/fleet.ts';
import { afterSuccess } from './audit/duplicates.ts';
import { eventually } from '../test/support/time/eventually.ts';
import { createLocalAdmin } from '../tools/local-stack/stores/kafka-native.ts';

interface Collect {
  scene: Scene;
  traffic: Traffic;
  sinceMs: number;
  recordsBefore: number;
  plan: Plan;
  injected: Injected;
}

/** Reads the deliveries from the API, and returns them together with the sent messages and the received requests. */
export async function collectEvidence(collect: Collect): Promise<Evidence> {
  const { scene, traffic, sinceMs, recordsBefore, plan, injected } = collect;
  const { book, fleet, baseUrls, companies, pause, stores } = scene;
  const deliveries = await readShown({
    baseUrl: baseUrls[0] ?? '',
    apiKeys: companies.map(({ apiKey }) => apiKey),
    sinceMs,
    endpointOf: traffic.endpointOf,
  });
  const { arrivals } = book;
  const recorded = await readRecorded(deliveries, { arrivals, pause });
  const records = injected.areRecordsDeleted
    ? null
    : (await countCreatedRecords(stores.addresses.kafkaBrokers)) - recordsBefore;
  return {
    sent: book.sent.map((sent) => withoutForgotten(sent, injected)),
    notSent: traffic.skipped(),
    arrivals,
    records,
    excuses: injected.excuses ?? [],
    delaysMs: DELAYS_MS,
    shown: deliveries.shown,
    recorded,
    refusalsOf: plan.refusalsOf,
    answers: { ...traffic.answers() },
    slowestAnswerMs: traffic.slowestAnswerMs(),
    ...fleet.takeEnds(),
  };
}

/** A message that is missing in a restored store may have arrived; its state is unknown. */
function withoutForgotten(sent: Sent, { forgotten }: Injected): Sent {
  const { answeredAtMs, answer } = sent;
  const isForgotten =
    forgotten !== undefined && answeredAtMs >= forgotten.fromMs && sent.sentAtMs <= forgotten.toMs;
  if (!isForgotten || answer.kind !== 'accepted') return sent;
  return { ...sent, answer: { kind: 'unknown', why: 'it is missing in the restored store' } };
}

interface ReadRecorded {
  arrivals: readonly Arrival[];
  pause: (ms: number) => Promise<void>;
}

/** How long to wait while no delivery ends. An outcome is recorded some hundredths of a second after its response. */
const RECORDED_WITHIN_MS = 20_000;
const READ_WITHIN_MS = 180_000;
const READ_AGAIN_AFTER_MS = 1_000;
/** Requests to the API at a time. */
const READERS = 8;

/**
 * Reads each delivery again that is pending, or that may have had a request twice, until none of them is pending. Notes
 * in `shown` what it finds, and returns the recorded attempts of these deliveries.
 */
export async function readRecorded(
  deliveries: ShownDeliveries,
  { arrivals, pause }: ReadRecorded,
): Promise<Map<string, RecordedAttempt[]>> {
  const { shown } = deliveries;
  const recorded = new Map<string, RecordedAttempt[]>();
  const byKey = arrivalsByDelivery(arrivals);
  let left = [...shown].flatMap(([key, { status, attemptCount }]) => {
    const requests = byKey.get(key) ?? [];
    const isDoubtful = requests.length > attemptCount || afterSuccess(requests).length > 0;
    return status === 'pending' || isDoubtful ? [key] : [];
  });
  const endsMs = performance.now() + READ_WITHIN_MS;
  for (let [fewest, stopsMs] = [Infinity, endsMs]; left.length > 0;) {
    const read = await readAll(deliveries, left, { recorded, endsMs });
    left = left.filter((key) => !read.has(key) || shown.get(key)?.status === 'pending');
    if (left.length < fewest) {
      fewest = left.length;
      stopsMs = Math.min(endsMs, performance.now() + RECORDED_WITHIN_MS);
    }
    if (performance.now() > stopsMs) break;
    if (left.length > 0) await pause(READ_AGAIN_AFTER_MS);
  }
  return recorded;
}

/** Returns the keys of the deliveries that the API has shown. */
async function readAll(
  { shown, placeOf }: ShownDeliveries,
  keys: readonly string[],
  { recorded, endsMs }: { recorded: Map<string, RecordedAttempt[]>; endsMs: number },
): Promise<Set<string>> {
  const read = new Set<string>();
  const unread = keys.values();
  const readOn = async (): Promise<void> => {
    for (const key of unread) {
      if (performance.now() > endsMs) return;
      const place = placeOf.get(key);
      const history = place && (await readHistory(place));
      if (!history) continue;
      const { status, attemptCount, attempts } = history;
      shown.set(key, { status, attemptCount });
      recorded.set(key, attempts);
      read.add(key);
    }
  };
  await Promise.all(Array.from({ length: READERS }, readOn));
  return read;
}

/** Deliveries as the API shows them, by `deliveryKey`, and where each can be read again. */
export interface ShownDeliveries {
  shown: Map<string, ShownDelivery>;
  placeOf: Map<string, Place>;
}

/** A delivery and the company that may read it. */
interface Place {
  api: Reader;
  id: string;
}

type Reader = Pick<Posthorn, 'deliveries'>;

/** One delivery with its recorded attempts. */
interface DeliveryHistory extends ShownDelivery {
  attempts: RecordedAttempt[];
}

interface ReadOptions {
  baseUrl: string;
  apiKeys: readonly string[];
  sinceMs: number;
  endpointOf: ReadonlyMap<string, number>;
}

const PAGE = 100;
/** Clocks of services differ by less. */
const MARGIN_MS = 1_000;
/** Within about 40 s: a gateway may still be recovering from the fault. */
const RETRIES = 8;

/** Reads all messages since `sinceMs` and their deliveries from the API. */
async function readShown({
  baseUrl,
  apiKeys,
  sinceMs,
  endpointOf,
}: ReadOptions): Promise<ShownDeliveries> {
  const all: ShownDeliveries = { shown: new Map(), placeOf: new Map() };
  const since = new Date(sinceMs - MARGIN_MS).toISOString();
  for (const apiKey of apiKeys) {
    const api = new Posthorn({ baseUrl, apiKey, maxRetries: RETRIES });
    for await (const message of api.messages.list({ since, limit: PAGE })) {
      note(all, { message, api, endpointOf });
    }
  }
  return all;
}

interface Read extends Pick<ReadOptions, 'endpointOf'> {
  message: ListedMessage;
  api: Reader;
}

function note({ shown, placeOf }: ShownDeliveries, { message, api, endpointOf }: Read): void {
  for (const { id, webhookId, status, attemptCount } of message.deliveries) {
    const endpoint = endpointOf.get(webhookId);
    if (endpoint === undefined) continue;
    const key = deliveryKey(message.id, endpoint);
    shown.set(key, { status, attemptCount });
    placeOf.set(key, { api, id });
  }
}

/** Reads one delivery with its attempts; null when the API does not show it now. */
async function readHistory({ api, id }: Place): Promise<DeliveryHistory | null> {
  const delivery = await api.deliveries.get(id, { maxRetries: 0 }).catch(() => null);
  if (!delivery) return null;
  const { status, attemptCount, attempts } = delivery;
  return { status, attemptCount, attempts: attempts.map(toRecorded) };
}

function toRecorded({ createdAt, updatedAt }: MadeAttempt): RecordedAttempt {
  return { startedAtMs: Date.parse(createdAt), endedAtMs: Date.parse(updatedAt) };
}

const MESSAGE_CREATED = 'posthorn.message-created';
const WITHIN_MS = 30_000;

/** Returns how many message-created records were ever published, copies included, since the topic was created. */
export async function countCreatedRecords(brokers: string): Promise<number> {
  const read = (): Promise<string[] | null> => readEnds(brokers).catch(() => null);
  const ends = await eventually('the offsets of message-created', read, WITHIN_MS);
  return ends.reduce((sum, end) => sum + Number(end), 0);
}

async function readEnds(brokers: string): Promise<string[]> {
  const admin = createLocalAdmin(brokers);
  await admin.connect();
  try {
    return (await admin.fetchTopicOffsets(MESSAGE_CREATED)).map(({ high }) => high);
  } finally {
    await admin.disconnect();
  }
}
