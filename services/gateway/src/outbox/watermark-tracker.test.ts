import { beforeEach, describe, expect, test } from '@jest/globals';
import { createWatermarkTracker, type WatermarkTracker } from './watermark-tracker.ts';

let tracker: WatermarkTracker;

beforeEach(() => {
  tracker = createWatermarkTracker('');
});

describe('the watermark tracker', () => {
  test('raises the watermark up to the first message that is not published', () => {
    const [a, b, c] = [1, 2, 3].map((n) => tracker.add('direct', `m${n}`, n));
    for (const message of [a, c]) if (message) message.isPublished = true;
    tracker.advance(null);
    expect([tracker.watermark(), tracker.unpublished(), tracker.oldestAtMs()]).toEqual([
      'm1',
      1,
      2,
    ]);
    if (b) b.isPublished = true;
    tracker.advance(null);
    expect([tracker.watermark(), tracker.unpublished(), tracker.oldestAtMs()]).toEqual([
      'm3',
      0,
      null,
    ]);
    expect(tracker.usedBytes()).toBe(0);
  });

  test('stays below what was read back and is not published', () => {
    tracker.add('direct', 'm9', 9).isPublished = true;
    const late = tracker.add('readBack', 'm5', 5);
    tracker.advance(null);
    expect(tracker.watermark()).toBe('');
    late.isPublished = true;
    tracker.advance(null);
    expect(tracker.watermark()).toBe('m9');
  });

  test('stays below what is not read back yet, and reaches the last message that was', () => {
    tracker.add('direct', 'm9', 9).isPublished = true;
    tracker.advance('m4');
    expect(tracker.watermark()).toBe('m4');
    tracker.advance(null);
    expect(tracker.watermark()).toBe('m9');
  });

  test('knows which messages are not published, of both origins', () => {
    const direct = [1, 3, 5].map((n) => tracker.add('direct', `m${n}`, n));
    tracker.add('readBack', 'm2', 2);
    for (const message of direct.slice(0, 2)) message.isPublished = true;
    tracker.advance(null);
    const all = ['m0', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6'];
    expect(all.filter(tracker.isUnpublished)).toEqual(['m2', 'm5']);
  });

  test('never lowers the watermark', () => {
    tracker.add('direct', 'm9', 9).isPublished = true;
    tracker.advance(null);
    tracker.advance('m9');
    tracker.add('direct', 'm10', 10);
    tracker.advance('m9');
    expect(tracker.watermark()).toBe('m9');
  });

  test('holds no more of what is published behind a message that waits than a thousand', () => {
    const waiting = tracker.add('direct', 'm000000', 0);
    const idOf = (n: number): string => `m${String(n).padStart(6, '0')}`;
    for (let n = 1; n <= 10_000; n += 1) {
      tracker.add('direct', idOf(n), n).isPublished = n !== 7_000;
      tracker.advance(null);
    }
    expect([tracker.watermark(), tracker.unpublished()]).toEqual(['', 2]);
    expect(tracker.usedBytes()).toBeLessThan(1_100 * 200);
    waiting.isPublished = true;
    tracker.advance(null);
    expect([tracker.watermark(), tracker.unpublished()]).toEqual([idOf(6_999), 1]);
  });
});
