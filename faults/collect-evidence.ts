import type { Evidence, Sent } from './audit/evidence.ts';
import { countCreatedRecords } from './load/count-records.ts';
import type { Plan } from './load/plan.ts';
import { readShown } from './load/read-api.ts';
import { readRecorded } from './load/read-recorded.ts';
import type { Traffic } from './load/traffic.ts';
import type { Injected, Scene } from './round.ts';
import { DELAYS_MS } from './stack/layout.ts';

interface Collect {
  scene: Scene;
  traffic: Traffic;
  sinceMs: number;
  recordsBefore: number;
  plan: Plan;
  injected: Injected;
  hasClockJumps: boolean;
}

/** Reads what the API shows, and returns it together with what was sent and received. */
export async function collectEvidence(collect: Collect): Promise<Evidence> {
  const { scene, traffic, sinceMs, recordsBefore, plan, injected, hasClockJumps } = collect;
  const { book, fleet, baseUrls, companies, pause, stores } = scene;
  const deliveries = await readShown({
    baseUrl: baseUrls[0] ?? '',
    apiKeys: companies.map(({ apiKey }) => apiKey),
    sinceMs,
    endpointOf: traffic.endpointOf,
  });
  const { arrivals } = book;
  const recorded = await readRecorded(deliveries, { arrivals, hasClockJumps, pause });
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
    hasClockJumps,
    shown: deliveries.shown,
    recorded,
    refusalsOf: plan.refusalsOf,
    answers: { ...traffic.answers() },
    slowestAnswerMs: traffic.slowestAnswerMs(),
    ...fleet.takeEnds(),
  };
}

/** A message that a restored store does not have any more may have arrived, and nobody can tell its state. */
function withoutForgotten(sent: Sent, { forgotten }: Injected): Sent {
  const { answeredAtMs, answer } = sent;
  const isForgotten =
    forgotten !== undefined && answeredAtMs >= forgotten.fromMs && sent.sentAtMs <= forgotten.toMs;
  if (!isForgotten || answer.kind !== 'accepted') return sent;
  return { ...sent, answer: { kind: 'unknown', why: 'the store does not have it any more' } };
}
