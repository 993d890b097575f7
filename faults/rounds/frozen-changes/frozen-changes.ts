import { Redis } from 'ioredis';
import { Posthorn } from '@posthorn/client';
import { metricIn, readMetrics } from '../../../bench/measure/metrics.ts';
import { type Receiver, startReceiver } from '../../../test/support/receivers/receiver.ts';
import type { Finding } from '../../audit/evidence.ts';
import type { Injected, Round, Scene } from '../../round.ts';
import { MEMBERS, USUAL_LAYOUT } from '../../stack/fleet.ts';
import { arrange, openStage } from './changed-configuration.ts';
import { type Freeze, FREEZES } from './freezes.ts';
import { type EndpointsOf, findingsOf, type ProbedChange, unusedForMs } from './probes.ts';
import { probeChanges } from './probing.ts';

export const FROZEN_CHANGES_LAYOUT = { ...USUAL_LAYOUT, hasMongodbProxy: true };

/** Nothing but the time of cached entries is left to notice a change (docs/decisions/0003-caches.md). */
export const FROZEN_CHANGES: readonly Round[] = FREEZES.map((freeze): Round => ({
  name: `frozen-changes-${freeze.name}`,
  summary: `no service hears of changes, from MongoDB (${freeze.shown}) or Redis: webhooks, apps, keys, uids and projects are changed`,
  promise:
    '0 lost, no message that is sent two seconds after the response to a change goes by the old configuration; changes are followed again afterwards',
  seconds: [45],
  layout: FROZEN_CHANGES_LAYOUT,
  answers: freeze.answers,
  // The last changes and their messages come after the fault, beside the load.
  recoverWithinMs: null,
  inject: (scene) => changeWhileFrozen(freeze, scene),
}));

/** Makes every kind of change at the moment of the fault, again while it lasts, and once more afterwards. */
export async function changeWhileFrozen(freeze: Freeze, scene: Scene): Promise<Injected> {
  const receiver = await startReceiver();
  await setAnnouncing(scene, false);
  try {
    const show = await openShow(scene, receiver);
    const frozen = await showFrozen(freeze, scene, show);
    const endedAtMs = Date.now();
    const isFollowed = await becomes(scene, 'followed');
    const later = await show();
    const changes = [...frozen.changes, ...later];
    const wrong = await judge(scene, receiver, changes);
    const sent = endpointsOf(receiver);
    scene.say(
      `${changes.length} changes: in use ${unusedForMs(frozen.changes, sent)} ms after the response at the latest, ${unusedForMs(later, sent)} ms once they were followed again`,
    );
    const findings = [
      ...(frozen.isFrozen ? [] : ['changes were still followed']),
      ...(isFollowed ? [] : ['changes are not followed again']),
      ...wrong,
    ];
    return { endedAtMs, findings };
  } finally {
    await setAnnouncing(scene, true);
    await receiver.close();
  }
}

async function showFrozen(freeze: Freeze, scene: Scene, show: Show) {
  let beganMs = 0;
  try {
    const changes = await show(() => {
      freeze.begin(scene);
      beganMs = performance.now();
      scene.say(`changes are frozen: ${freeze.shown}`);
    });
    const isFrozen = await becomes(scene, 'frozen');
    while (performance.now() - beganMs < scene.seconds * 1_000) changes.push(...(await show()));
    return { changes, isFrozen };
  } finally {
    freeze.end(scene);
  }
}

/** Redis refuses announcements and does everything else. */
async function setAnnouncing({ stores }: Scene, isAllowed: boolean): Promise<void> {
  const redis = new Redis(stores.addresses.redisUrl);
  try {
    await redis.call('ACL', 'SETUSER', 'default', isAllowed ? '+publish' : '-publish');
  } finally {
    redis.disconnect();
  }
}

/** The driver notices after 20 s that a request gets no reply, and opens a stream that is current for a second. */
const BECOMES_WITHIN_MS = 30_000;
const READ_EVERY_MS = 200;

/** Waits until no gateway and no dispatcher follows changes, or all of them do. Returns false when that takes too long. */
async function becomes(
  { opsUrlOf, pause }: Scene,
  wanted: 'frozen' | 'followed',
): Promise<boolean> {
  const caching = MEMBERS.filter((member) => !member.startsWith('retry'));
  const value = wanted === 'followed' ? 1 : 0;
  const endsMs = performance.now() + BECOMES_WITHIN_MS;
  while (performance.now() < endsMs) {
    const texts = await Promise.all(caching.map((member) => readMetrics(opsUrlOf(member))));
    const shown = texts.map((text) => metricIn(text, 'posthorn_config_changes_current'));
    if (shown.every((each) => each === value)) return true;
    await pause(READ_EVERY_MS);
  }
  return false;
}

/** Of requests that create and change. Within about 40 s. */
const RETRIES = 8;

/** Makes every kind of change once; `beforeChange` is called right before. */
type Show = (beforeChange?: () => void) => Promise<ProbedChange[]>;

async function openShow(scene: Scene, { url }: Receiver): Promise<Show> {
  const { baseUrls, companies } = scene;
  const apiKey = companies[0]?.apiKey ?? '';
  const api = new Posthorn({ baseUrl: baseUrls[0], apiKey, maxRetries: RETRIES });
  const stage = await openStage(api, (endpoint) => `${url}/${endpoint}`);
  let sets = 0;
  return async (beforeChange = () => undefined) => {
    const subjects = await arrange(stage, (sets += 1));
    const keyed = subjects.map((subject) => ({ apiKey, ...subject }));
    return probeChanges(scene, keyed, beforeChange);
  };
}

/** Of the messages of a change, when nothing is wrong: a second. */
const DELIVERED_WITHIN_MS = 60_000;
const QUIET_MS = 3_000;
const JUDGE_EVERY_MS = 1_000;

/** Judges when the endpoints have got what they must, and nothing more for a while; a minute later in any case. */
async function judge(
  { pause }: Scene,
  receiver: Receiver,
  changes: readonly ProbedChange[],
): Promise<Finding[]> {
  const endsMs = performance.now() + DELIVERED_WITHIN_MS;
  for (;;) {
    const found = findingsOf(changes, endpointsOf(receiver));
    const isQuiet = Date.now() - (receiver.received.at(-1)?.atMs ?? 0) > QUIET_MS;
    if ((isQuiet && found.length === 0) || performance.now() > endsMs) return found;
    await pause(JUDGE_EVERY_MS);
  }
}

function endpointsOf({ received }: Receiver): EndpointsOf {
  const byMessage = Map.groupBy(received, ({ headers }) => String(headers['webhook-id']));
  return (messageId) =>
    (byMessage.get(messageId) ?? []).map(({ path }) => path.slice(path.lastIndexOf('/') + 1));
}
