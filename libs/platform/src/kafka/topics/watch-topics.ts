import { Gauge, type Registry } from 'prom-client';
import { createLoop } from '../../async/loop.ts';
import type { Logger } from '../../service/logger.ts';
import type { ExistingTopics } from '../connection/connect.ts';

export interface TopicWatchDeps {
  /** The topics that settings ask for. Nothing works without one of them until it is created again. */
  required: readonly string[];
  /** Topics of earlier settings that are read too. A process that starts without them works. */
  optional: readonly string[];
  readTopics: () => Promise<ExistingTopics>;
  registry: Registry;
  logger: Pick<Logger, 'error' | 'info' | 'warn'>;
}

export interface TopicWatch {
  start: () => void;
  /** Begins no further check. Does not wait for the one that runs. */
  stop: () => void;
  /** One check; `start` makes one every 30 seconds. */
  tick: () => Promise<void>;
  /**
   * False when an optional topic was missing in two checks: a consumer asks for all its topics together,
   * and reads none of them until the process is restarted.
   */
  isAlive: () => boolean;
}

const EVERY_MS = 30_000;

/** Watches for topics that were deleted while a service runs. */
export function createTopicWatch(deps: TopicWatchDeps): TopicWatch {
  const { required, optional, readTopics, registry, logger } = deps;
  const missing = new Set<string>();
  let isAlive = true;
  openGauge(registry, required, missing);

  async function check(): Promise<void> {
    const existing = await readTopics();
    const areGone = optional.some((topic) => !existing.has(topic));
    isAlive = !optional.some((topic) => missing.has(topic) && !existing.has(topic));
    if (areGone) logger.warn({}, 'a delay topic of earlier settings was deleted');
    for (const topic of [...required, ...optional]) note(topic, !existing.has(topic));
  }

  function note(topic: string, isMissing: boolean): void {
    if (isMissing === missing.has(topic)) return;
    if (!isMissing) missing.delete(topic);
    else missing.add(topic);
    if (optional.includes(topic)) return;
    if (!isMissing) logger.info({ topic }, 'the topic exists again');
    else logger.error({ topic }, 'a topic was deleted: what waited in it is lost, create it again');
  }

  const loop = createLoop({ name: 'topic watch', everyMs: EVERY_MS, run: check, logger });
  return {
    start: loop.start,
    stop: () => void loop.stop(),
    tick: loop.tick,
    isAlive: () => isAlive,
  };
}

function openGauge(
  registry: Registry,
  topics: readonly string[],
  missing: ReadonlySet<string>,
): void {
  new Gauge({
    name: 'posthorn_kafka_topic_missing',
    help: '1 while a topic that this process needs does not exist, otherwise 0.',
    labelNames: ['topic'],
    registers: [registry],
    collect() {
      for (const topic of topics) this.set({ topic }, missing.has(topic) ? 1 : 0);
    },
  });
}
