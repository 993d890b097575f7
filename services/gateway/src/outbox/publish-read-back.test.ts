import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Message } from '@posthorn/domain/message.ts';
import { decodeMessageCreated } from '@posthorn/domain/records/records.ts';
import { createLogger } from '@posthorn/platform/service/logger.ts';
import { sampleMessage } from '../../../../test/support/samples/sample-message.ts';
import { Publication } from './publication.ts';

/** A company that waits alone may hold half of it: 300 small messages. */
const QUEUE_BYTES = 2 * 300 * 1_086;
const ALL = Array.from({ length: 1_000 }, (_, n) => `msg_${1_000 + n}`);
const KNOWN = ALL.slice(0, 700);

/** The ids that the store shows. */
let shown: readonly string[];
let published: string[];
let monotonicMs: number;
/** Called when a page has fewer messages than it may have. */
let onShortPage: () => void;
let publication: Publication;

const message = (id: string): Message => sampleMessage(id, { companyId: 'comp_1' });

beforeEach(() => {
  [shown, published, monotonicMs] = [KNOWN, [], 0];
  publication = new Publication({
    topic: 'created',
    publisherId: 'gw_1',
    logger: createLogger('test', 'silent'),
    publishQueueBytes: QUEUE_BYTES,
    firstWatermark: '',
    assertOwner: () => undefined,
    nowMs: () => 0,
    monotonicMs: () => monotonicMs,
    records: {
      publish: (records) => {
        published.push(...records.map(({ value }) => decodeMessageCreated(value).messageId));
        return Promise.resolve();
      },
    },
    messages: {
      pageOf: ({ afterId, limit }) => {
        const page = shown.filter((id) => id > afterId).slice(0, limit);
        if (page.length < limit) onShortPage();
        return Promise.resolve(page.map(message));
      },
    },
  });
});

/** Hands over more messages than fit into memory, so that the rest is read back. */
async function publishAll(): Promise<void> {
  publication.add(ALL.map(message));
  await publication.close(60_000);
}

describe('a page that ends before a message that was acknowledged', () => {
  test('is read again, because a new primary may show the message a moment later', async () => {
    const watermarks: string[] = [];
    onShortPage = () => {
      watermarks.push(publication.state().watermark);
      shown = ALL;
    };
    await publishAll();
    expect(watermarks[0] && watermarks[0] <= String(KNOWN.at(-1))).toBe(true);
    expect(published).toEqual(ALL);
    expect(publication.state()).toMatchObject({ watermark: ALL.at(-1), unpublished: 0 });
  });

  test('is the end when the message is absent after more than the 8 s of a heartbeat', async () => {
    let shortPages = 0;
    onShortPage = () => {
      shortPages += 1;
      monotonicMs += 4_001;
    };
    await publishAll();
    expect([shortPages, published]).toEqual([3, KNOWN]);
    expect(publication.state().unpublished).toBe(0);
  });
});
