import { createRequire } from 'node:module';

/** The part of a broker of kafkajs, which has one connection for these requests, that is used here. */
export interface PatchedBroker {
  produce: (request: object) => Promise<unknown>;
  apiVersions: () => Promise<object>;
}

let isPatched = false;

/**
 * kafkajs repeats a Produce request that got no answer on the same connection. A broker that was frozen executes all of
 * them: after 30 s it had up to three copies of what was under way, 11 % more records. After the patch a broker that has
 * not answered is asked for its versions first, and the records are sent again only when it answers.
 */
export function patchProduce(): void {
  if (isPatched) return;
  isPatched = true;
  askBeforeRepeating(brokerPrototype());
}

/** Replaces `produce` by one that sends nothing to a broker that has not answered since its last time-out. */
export function askBeforeRepeating(broker: PatchedBroker): void {
  const unanswered = new WeakSet<PatchedBroker>();
  const { produce } = broker;
  broker.produce = async function (this: PatchedBroker, request) {
    if (unanswered.has(this)) await this.apiVersions();
    unanswered.delete(this);
    try {
      return await produce.call(this, request);
    } catch (error) {
      if (isTimeout(error)) unanswered.add(this);
      throw error;
    }
  };
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'KafkaJSRequestTimeoutError';
}

function brokerPrototype(): PatchedBroker {
  const require = createRequire(import.meta.url);
  const broker = require('kafkajs/src/broker/index.js') as { prototype: PatchedBroker };
  return broker.prototype;
}
