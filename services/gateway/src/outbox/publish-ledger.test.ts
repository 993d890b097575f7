import { beforeEach, describe, expect, test } from '@jest/globals';
import { createPublishLedger, type PublishLedger } from './publish-ledger.ts';

let ledger: PublishLedger;

beforeEach(() => {
  ledger = createPublishLedger();
});

describe('the ledger of what is published', () => {
  test('raises the watermark over what is done, up to the first that is not', () => {
    const [a, b, c] = [1, 2, 3].map((n) => ledger.add('direct', `m${n}`, n));
    for (const entry of [a, c]) if (entry) entry.isDone = true;
    ledger.raise(null);
    expect([ledger.watermark(), ledger.unfinished(), ledger.oldestAtMs()]).toEqual(['m1', 1, 2]);
    if (b) b.isDone = true;
    ledger.raise(null);
    expect([ledger.watermark(), ledger.unfinished(), ledger.oldestAtMs()]).toEqual(['m3', 0, null]);
    expect(ledger.usedBytes()).toBe(0);
  });

  test('stays below what was read back and is not done', () => {
    ledger.add('direct', 'm9', 9).isDone = true;
    const late = ledger.add('readBack', 'm5', 5);
    ledger.raise(null);
    expect(ledger.watermark()).toBe('');
    late.isDone = true;
    ledger.raise(null);
    expect(ledger.watermark()).toBe('m9');
  });

  test('stays below what lies in the store unread, and reaches the last that was read', () => {
    ledger.add('direct', 'm9', 9).isDone = true;
    ledger.raise('m4');
    expect(ledger.watermark()).toBe('m4');
    ledger.raise(null);
    expect(ledger.watermark()).toBe('m9');
  });

  test('never takes the watermark back', () => {
    ledger.add('direct', 'm9', 9).isDone = true;
    ledger.raise(null);
    ledger.raise('m9');
    ledger.add('direct', 'm10', 10);
    ledger.raise('m9');
    expect(ledger.watermark()).toBe('m9');
  });
});
