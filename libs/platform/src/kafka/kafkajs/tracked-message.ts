import type { Message } from 'kafkajs';

/** What the messages of one send share. */
export interface TrackedSend {
  /** No request begins from then on, by the monotonic clock: the caller has given the send up, and repeats it. */
  endsAtMs: number;
  /** One for each request with messages of this send. Each resolves when its messages are marked. */
  requests: Promise<void>[];
}

/** A message that learns what became of it: kafkajs hands the same object to its broker. */
export interface TrackedMessage extends Message {
  topic: string;
  /** True when every in-sync replica has it. */
  isStored: boolean;
  send: TrackedSend;
}
