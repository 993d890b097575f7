/** What is asked of an installation. */
export interface Load {
  messagesPerSecond: number;
  /** Webhooks that each message goes to; a mean, so it may be a fraction. */
  targetsPerMessage: number;
  /** How long messages, deliveries and attempts are kept (`RETENTION_DAYS`). */
  days: number;
  payloadBytes: number;
  /** Of what an endpoint answers; its beginning is kept with the attempt. */
  responseBytes: number;
  /** Mean time from the beginning of an attempt to its answer. Attempts that time out count with 15 s. */
  endpointLatencyMs: number;
  /** Share of attempts that fail, from 0 to below 1. Retries fail as often. */
  failureShare: number;
  /** For how many times the dispatchers that are needed now the partitions are made. */
  growth: number;
  /** Copies of each partition in Kafka (`TOPIC_REPLICATION`). */
  kafkaCopies: number;
}

/** Attempts that a delivery has at most: one more than the schedule has delays (docs/contract.md C10.4). */
const MAX_ATTEMPTS = 7;

/** What a load means per second, and the arithmetic of it. */
export interface Rates {
  deliveries: number;
  retries: number;
  attempts: number;
}

export function ratesOf({ messagesPerSecond, targetsPerMessage, failureShare }: Load): Rates {
  const deliveries = messagesPerSecond * targetsPerMessage;
  const retries = deliveries * retriesPerDelivery(failureShare);
  return { deliveries, retries, attempts: deliveries + retries };
}

/** A second attempt follows a failure, a third one two failures, and so on. */
export function retriesPerDelivery(failureShare: number): number {
  const powers = Array.from(
    { length: MAX_ATTEMPTS - 1 },
    (_, index) => failureShare ** (index + 1),
  );
  return powers.reduce((sum, each) => sum + each, 0);
}
