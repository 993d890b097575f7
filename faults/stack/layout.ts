/** How the stack of a round differs from the usual one. Rounds of one layout may share a stack. */
export interface Layout {
  /** Settings of every program. */
  settings: Readonly<Record<string, string>>;
  /** Which processes reach Kafka through a proxy. */
  kafkaProxy: 'none' | 'all' | 'dispatcher-1';
  /** Whether Redis is reached through a proxy. */
  hasRedisProxy: boolean;
  /** A store whose data lie on a disk of this size, in MiB. */
  smallDisk: { store: 'kafka' | 'mongodb'; mebibytes: number } | null;
  /** Whether the clock of dispatchers and retry services can be set. */
  hasOwnClock: boolean;
  /** Whether it keeps messages as an earlier version does, without a collection for each day. */
  isOfBefore: boolean;
}

/** Short enough that every attempt of a schedule belongs to its round. */
export const DELAYS_MS = [2_000, 3_000, 5_000];

export const USUAL_LAYOUT: Layout = {
  settings: {
    RETRY_DELAYS: DELAYS_MS.map((ms) => `${ms}ms`).join(','),
    DEFERRAL_DELAYS: '1s,5s,15s,1m',
    TOPIC_PARTITIONS: '12',
    EGRESS_ALLOW_LOOPBACK: 'true',
    EGRESS_ALLOW_HTTP: 'true',
    // Every receiver is on this machine.
    HOST_ATTEMPTS_PER_SECOND: '0',
  },
  kafkaProxy: 'none',
  hasRedisProxy: false,
  smallDisk: null,
  hasOwnClock: false,
  isOfBefore: false,
};
