import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { metricValues, readMetrics } from '../../../bench/measure/metrics.ts';
import type { Injected, Round, Scene } from '../../round.ts';
import { type Change, changeSource, copySources } from '../../stack/source-copy.ts';
import { createLocalAdmin } from '../../../tools/local-stack/stores/kafka-native.ts';

const MEMBER = 'dispatcher-1';
const WITHIN_MS = 150_000;
/** A partition with a longer backlog is blocked: it has 8 or 9 records a second at the usual rate. */
const BLOCKED_RECORDS = 50;
/** The metric shows a partition that has not moved for longer, well before its consumer is replaced. */
const SHOWN_AFTER_S = 60;
const PROGRESS = 'posthorn_kafka_consumer_last_progress_timestamp_seconds';

/** The first attempt of a message that comes to this place ends nowhere. It leaves when it began, and the time, in a file. */
const hangOnce = (due: string, beganAtMs: string): string =>
  `if (${due}.trigger === 'first' && !globalThis.hasHung) {
    globalThis.hasHung = true;
    const files = await import('node:fs');
    files.writeFileSync(process.env.HUNG_FILE + '.new', JSON.stringify([${beganAtMs}, Date.now()]));
    files.renameSync(process.env.HUNG_FILE + '.new', process.env.HUNG_FILE);
    await new Promise(() => undefined);
  }`;

/** The file has a second batcher, of resends, with the same last line. */
const END_OF_SETTLE = `await settleBatch(deps, batch);
      return batch.map(() => undefined);
    },
  });
`;

interface Hang {
  name: string;
  summary: string;
  promise: string;
  /** True when the request was made, so that it is made again. */
  isMade: boolean;
  change: Change;
}

export const HANGS: readonly Hang[] = [
  {
    name: 'hung-request',
    summary:
      'a fault of the program: in one dispatcher an attempt waits for ever before its request',
    promise: '0 lost, 0 duplicates',
    isMade: false,
    change: {
      file: 'services/dispatcher/src/attempt/make-request.ts',
      find: 'const to = await begin(deps, dueRecord, rights, hasWaited ? null : found);',
      replace: `${hangOnce('due', 'Date.now()')}\n  const to = await begin(deps, dueRecord, rights, hasWaited ? null : found);`,
    },
  },
  {
    name: 'hung-record',
    summary:
      'a fault of the program: in one dispatcher the outcome of an attempt is never recorded',
    promise: '0 lost, that attempt is made twice',
    isMade: true,
    change: {
      file: 'services/dispatcher/src/settle.ts',
      find: `${END_OF_SETTLE}  return batcher.add;`,
      replace: `${END_OF_SETTLE}  return async (settled) => {\n  ${hangOnce('settled.due', 'settled.attempt.startedAtMs')}\n  await batcher.add(settled);\n  };`,
    },
  },
];

/** The production code has no switch for this: one dispatcher runs changed sources. */
export const HUNG_ATTEMPTS: readonly Round[] = HANGS.map((hang): Round => ({
  name: hang.name,
  summary: hang.summary,
  promise: `${hang.promise}; a metric shows its partition, which continues within 150 s`,
  seconds: [WITHIN_MS / 1_000],
  touches: ['dispatcher'],
  spoilsStack: true,
  recoverWithinMs: () => WITHIN_MS,
  inject: (scene) => watchHang(hang, scene),
}));

async function watchHang({ change, isMade }: Hang, scene: Scene): Promise<Injected> {
  const { beganAtMs, hungAtMs } = await runHanging(change, scene);
  scene.say('an attempt of dispatcher-1 hangs');
  const shown = await scene
    .until('the metric', () => isShown(scene), WITHIN_MS)
    .then(() => Date.now() - hungAtMs, passAbort);
  const { kafkaBrokers } = scene.stores.addresses;
  const readLag = (): Promise<number> => readLargestLag(kafkaBrokers).catch(() => Infinity);
  const isMoving = async (): Promise<boolean> => (await readLag()) < BLOCKED_RECORDS;
  const ended = await scene
    .until('its partition', isMoving, 2 * WITHIN_MS)
    .then(() => Date.now() - hungAtMs, passAbort);
  scene.say(`shown by the metric: ${inSeconds(shown)}, moving again: ${inSeconds(ended)}`);
  return {
    endedAtMs: hungAtMs,
    excuses: isMade ? [{ reason: 'never recorded', fromMs: beganAtMs, toMs: hungAtMs }] : [],
    findings: [
      ...(shown === null ? ['no metric shows the blocked partition'] : []),
      ...(ended === null || ended > WITHIN_MS
        ? [`the partition moved again: ${inSeconds(ended)}`]
        : []),
    ],
  };
}

/** When the attempt that hangs began, and when it hung, in milliseconds since 1970. */
interface HungAttempt {
  beganAtMs: number;
  hungAtMs: number;
}

async function runHanging(change: Change, { stackDir, fleet, until }: Scene): Promise<HungAttempt> {
  const root = join(stackDir, 'hanging');
  const file = join(stackDir, 'hung-at');
  rmSync(file, { force: true });
  copySources(root);
  changeSource(root, change);
  await fleet.stop(MEMBER);
  await fleet.start(MEMBER, { root, env: { HUNG_FILE: file } });
  await until('the attempt hangs', () => existsSync(file), 60_000);
  const [beganAtMs, hungAtMs] = JSON.parse(readFileSync(file, 'utf8')) as [number, number];
  return { beganAtMs, hungAtMs };
}

/** True when a metric of a dispatcher says that a partition has not moved for a minute. */
async function isShown({ opsUrlOf }: Scene): Promise<boolean> {
  const movedAtS = metricValues(await readMetrics(opsUrlOf(MEMBER)), PROGRESS);
  return movedAtS.length > 0 && Date.now() / 1_000 - Math.min(...movedAtS) > SHOWN_AFTER_S;
}

function passAbort(error: unknown): null {
  if (error instanceof Error && error.name === 'AbortError') throw error;
  return null;
}

function inSeconds(ms: number | null): string {
  return ms === null ? 'never' : `after ${Math.round(ms / 1_000)} s`;
}

const GROUP = 'posthorn.dispatcher';
const TOPIC = 'posthorn.message-created';

/** Returns how many records the partition of message-created with the longest backlog has that are not committed. */
async function readLargestLag(brokers: string): Promise<number> {
  const admin = createLocalAdmin(brokers);
  await admin.connect();
  try {
    const ends = await admin.fetchTopicOffsets(TOPIC);
    const groups = await admin.fetchOffsets({ groupId: GROUP, topics: [TOPIC] });
    const committed = new Map(
      groups.flatMap(({ partitions }) => partitions.map((each) => [each.partition, each.offset])),
    );
    // -1 before the first commit.
    const lags = ends.map(
      ({ partition, high }) => Number(high) - Math.max(0, Number(committed.get(partition) ?? 0)),
    );
    return Math.max(...lags);
  } finally {
    await admin.disconnect();
  }
}
