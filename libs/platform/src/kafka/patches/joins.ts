import { createRequire } from 'node:module';

/** The part of kafkajs's consumer group, one for each run of a consumer, that is used here. */
interface ConsumerGroup {
  memberId: string | null;
  /** When the group last answered a heartbeat, by the wall clock. */
  lastRequest: number;
  joinAndSync: () => Promise<void>;
  /** The places at which partitions are to be read from the next fetch on. */
  seekOffset: Map<string, unknown>;
  heartbeat: (options: { interval: number }) => Promise<void>;
}

const require = createRequire(import.meta.url);

const REBALANCE_IN_PROGRESS = 27;

/** Returns the error after which kafkajs joins its group again. */
export function rebalanceError(): Error {
  const { createErrorFromCode } = require('kafkajs/src/protocol/error.js') as {
    createErrorFromCode: (code: number) => Error;
  };
  return createErrorFromCode(REBALANCE_IN_PROGRESS);
}

/** Member id → the promise for which its next join waits. */
const delays = new Map<string, Promise<void>>();

/** Delays the next join of the member until the promise has resolved; it must not reject. */
export function delayJoin(memberId: string, until: Promise<void>): void {
  delays.set(memberId, until);
}

/**
 * When a consumer of kafkajs 2.2.4 cannot join its group again, because of a time-out or a lost connection, it reads
 * on with the partitions that it had before. When its session has expired it has no member id by then, and without
 * one kafkajs sends no heartbeat, from whose answer it would learn that. After an outage of Kafka of 15 s, two
 * dispatchers delivered each message, for a minute. After the patch a consumer whose last join failed has no
 * heartbeat, as during a rebalance: it hands no record over, and joins again.
 *
 * kafkajs joins at once when its group changes. After the patch a join can be delayed.
 *
 * kafkajs times its heartbeats by the wall clock: when that was set back by an hour, it sent none for an hour. Its
 * group gave its partitions to others after ten seconds, and it continued to read them. After the patch it sends the
 * next one in time.
 */
export function patchJoins(): void {
  const { prototype } = require('kafkajs/src/consumer/consumerGroup.js') as {
    prototype: ConsumerGroup;
  };
  const members = new WeakSet<ConsumerGroup>();
  const { joinAndSync, heartbeat } = prototype;
  prototype.joinAndSync = async function (this: ConsumerGroup): Promise<void> {
    members.delete(this);
    const memberId = this.memberId ?? '';
    const delay = delays.get(memberId);
    delays.delete(memberId);
    await delay;
    // kafkajs keeps the seek of a partition that moves to another member, and would read from there when it comes back.
    this.seekOffset.clear();
    await joinAndSync.call(this);
    members.add(this);
  };
  prototype.heartbeat = async function (this: ConsumerGroup, options): Promise<void> {
    if (!members.has(this)) throw rebalanceError();
    this.lastRequest = Math.min(this.lastRequest, Date.now());
    await heartbeat.call(this, options);
  };
}
