import type { Message } from 'kafkajs';

/** A message of one send, which learns what became of it: kafkajs hands the same object to its broker. */
export interface TrackedMessage extends Message {
  topic: string;
  /** True when every in-sync replica has it. */
  isStored: boolean;
  /** One for each request with messages of its send, shared by all of them. Each resolves when its messages are marked. */
  requests: Promise<void>[];
}
