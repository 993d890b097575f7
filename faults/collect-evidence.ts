import { afterSuccess } from './audit/after-success.ts';
import { arrivalsByDelivery } from './audit/deliveries.ts';
import type { Evidence, Sent, ShownDelivery } from './audit/evidence.ts';
import type { Plan } from './load/plan.ts';
import { readShown, readAttempts, type ShownDeliveries } from './load/read-api.ts';
import type { Traffic } from './load/traffic.ts';
import type { Injected, Scene } from './round.ts';
import { DELAYS_MS } from './stack/layout.ts';

interface Collect {
  scene: Scene;
  traffic: Traffic;
  sinceMs: number;
  plan: Plan;
  injected: Injected;
  hasClockJumps: boolean;
}

/** How long to wait while deliveries are pending. One is recorded some hundredths of a second after its response. */
const RECORDED_WITHIN_MS = 20_000;
/** Each is one request to the API. */
const MAX_HISTORIES = 2_000;

/** Reads what the API shows, and returns it together with what was sent and received. */
export async function collectEvidence(collect: Collect): Promise<Evidence> {
  const { scene, traffic, sinceMs, plan, injected, hasClockJumps } = collect;
  const { book, fleet, baseUrls, companies } = scene;
  const access = { baseUrl: baseUrls[0] ?? '', apiKeys: companies.map(({ apiKey }) => apiKey) };
  const shown = await readUntilFinal(scene, () =>
    readShown({ ...access, sinceMs, endpointOf: traffic.endpointOf }),
  );
  const byKey = arrivalsByDelivery(book.arrivals);
  const doubtful = [...shown.idOf].filter(([key]) => {
    const requests = byKey.get(key) ?? [];
    const attempts = hasClockJumps ? 1 : (shown.shown.get(key)?.attemptCount ?? 0);
    return requests.length > attempts || afterSuccess(requests).length > 0;
  });
  return {
    sent: book.sent.map((sent) => withoutForgotten(sent, injected)),
    notSent: traffic.skipped(),
    arrivals: book.arrivals,
    excuses: injected.excuses ?? [],
    delaysMs: DELAYS_MS,
    hasClockJumps,
    shown: shown.shown,
    recorded: await readAttempts(access, new Map(doubtful.slice(0, MAX_HISTORIES))),
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

/** Reads again while a delivery is pending, for a while. */
async function readUntilFinal(
  { pause }: Scene,
  read: () => Promise<ShownDeliveries>,
): Promise<ShownDeliveries> {
  const endsMs = performance.now() + RECORDED_WITHIN_MS;
  for (;;) {
    const shown = await read();
    if (!hasPending(shown.shown.values()) || performance.now() > endsMs) return shown;
    await pause(1_000);
  }
}

function hasPending(shown: Iterable<ShownDelivery>): boolean {
  for (const { status } of shown) if (status === 'pending') return true;
  return false;
}
