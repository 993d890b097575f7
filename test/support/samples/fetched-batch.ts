import type { FetchedBatch } from '@posthorn/platform/kafka/consumer/group-client.ts';

interface Options {
  /** 0 unless given. */
  partition?: number;
  /** The offsets of its records. */
  offsets: readonly number[];
  /** Where the batch begins and ends: where its records do unless given. */
  from?: number | undefined;
  to?: number | undefined;
  /** Called with the last offset that needs no further fetch. */
  onResolved: (offset: string) => void;
}

/** Returns a batch of topic `a`, as kafkajs hands it over. */
export function fetchedBatch({
  partition = 0,
  offsets,
  from,
  to,
  onResolved,
}: Options): FetchedBatch {
  const last = to ?? offsets.at(-1) ?? 0;
  const record = { timestamp: '1000', key: null, value: null, headers: {} };
  return {
    batch: {
      topic: 'a',
      partition,
      highWatermark: String(last + 1),
      messages: offsets.map((offset) => ({ offset: String(offset), ...record })),
      firstOffset: () => String(from ?? offsets[0]),
      lastOffset: () => String(last),
    },
    resolveOffset: onResolved,
  };
}
