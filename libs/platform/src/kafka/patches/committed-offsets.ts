import { createRequire } from 'node:module';

/** The part of kafkajs's cluster, one for each consumer, that is used here. */
interface Cluster {
  /** Called once in each generation of a group. Returns topic → partition → offset. */
  committedOffsets: () => Record<string, Record<string, string>>;
}

/**
 * Kafkajs 2.2.4 keeps the committed offsets of a group once for all consumers of a client. One that joined removed those
 * of another: that one ended with a TypeError, which a consumer does not survive. After the patch each has its own.
 */
export function patchCommittedOffsets(): void {
  const require = createRequire(import.meta.url);
  const { prototype } = require('kafkajs/src/cluster/index.js') as { prototype: Cluster };
  prototype.committedOffsets = () => ({});
}
