import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openRawEndpoint, type RawEndpoint } from '../../support/receivers/raw-endpoint.ts';
import { startPosthorn, type Posthorn } from '../../support/process/posthorn.ts';
import { sendMany, untilDelivered } from '../../support/process/traffic.ts';
import { MEMORY_FLAGS, watchMemory } from '../../support/process/watch-memory.ts';

const ENDPOINTS = 64;
const EACH = 4;
const MAX_GROWTH_MIB = 60;

const HEAD = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
const chunks = (bytes: number, times: number): string =>
  `${bytes}\r\n${'x'.repeat(bytes)}\r\n`.repeat(times);

describe('64 endpoints of one company that drip their responses [security]', () => {
  let posthorn: Posthorn;
  let endpoints: RawEndpoint[];
  let webhookIds: string[];

  beforeAll(async () => {
    posthorn = await startPosthorn({ ...MEMORY_FLAGS, DELIVERY_TIMEOUT_MS: '4000' });
    endpoints = await Promise.all(Array.from({ length: ENDPOINTS }, openRawEndpoint));
    webhookIds = [];
    for (const { origin } of endpoints) {
      webhookIds.push((await posthorn.api.createTarget(`${origin}/`)).webhookId);
    }
    // Connections and what V8 keeps for garbage are the same after the first round and after any; what is kept of
    // responses that hang would be there again in each.
    await deliver(HEAD + chunks(1, 4_095));
  }, 240_000);

  afterAll(async () => {
    for (const endpoint of endpoints) endpoint.close();
    await posthorn.stop();
  }, 60_000);

  /** Sends messages to all endpoints, which answer so; resolves when each delivery has its status. */
  async function deliver(response: string): Promise<void> {
    for (const endpoint of endpoints) endpoint.talk = (socket) => socket.write(response);
    const sent = await sendMany(posthorn.api, webhookIds, EACH);
    await untilDelivered(posthorn.api, sent, 180_000);
  }

  it.each([
    ['4,095 chunks of one byte', chunks(1, 4_095)],
    ['1,000 chunks of four bytes', chunks(4, 1_000)],
  ])(
    'and hang cost the dispatcher no memory: %s',
    async (_what, body) => {
      const memory = await watchMemory(posthorn.dispatcher);
      await deliver(HEAD + body);
      expect(await memory.grownMib()).toBeLessThan(MAX_GROWTH_MIB);
    },
    240_000,
  );
});
