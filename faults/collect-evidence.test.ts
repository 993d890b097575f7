import { describe, expect, it } from '@jest/globals';
import { Posthorn } from '@posthorn/client';
import type { Arrival } from './audit/evidence.ts';
import { type ShownDeliveries, readRecorded } from './collect-evidence.ts';

const CREATED_AT = '2026-11-26T00:00:00.000Z';
const attempt = { createdAt: CREATED_AT, updatedAt: CREATED_AT };
const READ = { startedAtMs: Date.parse(CREATED_AT), endedAtMs: Date.parse(CREATED_AT) };

/** Deliveries of endpoint 0, and an API that shows their next states, one for each time it is asked. */
function delivery(
  states: Record<string, readonly [first: string, ...next: (string | null)[]]>,
): ShownDeliveries & { asked: string[] } {
  const asked: string[] = [];
  const api = new Posthorn({
    apiKey: 'key',
    baseUrl: 'http://127.0.0.1:1',
    fetch: (url) => {
      const id = url.split('/').at(-1) ?? '';
      const nth = asked.filter((each) => each === id).length;
      asked.push(id);
      const status = states[id]?.[nth + 1] ?? null;
      const data = { status, attemptCount: 1, attempts: [attempt] };
      const init = { status: status === null ? 503 : 200 };
      return Promise.resolve(Response.json({ success: status !== null, data }, init));
    },
  });
  const ids = Object.keys(states);
  return {
    asked,
    shown: new Map(
      ids.map((id) => [`${id}/0`, { status: states[id]?.[0] ?? '', attemptCount: 1 }]),
    ),
    placeOf: new Map(ids.map((id) => [`${id}/0`, { api, id }])),
  };
}

function arrival(messageId: string, atMs: number): Arrival {
  const isGood = { isSigned: true, isIntact: true };
  return { messageId, n: 1, endpoint: 0, atMs, answeredAtMs: atMs + 1, status: 404, ...isGood };
}

function read(
  deliveries: ShownDeliveries,
  arrivals: readonly Arrival[],
): ReturnType<typeof readRecorded> {
  return readRecorded(deliveries, {
    arrivals,
    pause: () => Promise.resolve(),
  });
}

describe('the recorded attempts', () => {
  it('are read of a delivery with more requests than attempts, and of no other', async () => {
    const deliveries = delivery({ twice: ['delivered', 'delivered'], once: ['delivered'] });
    const arrivals = [arrival('twice', 1), arrival('twice', 5), arrival('once', 1)];
    expect(await read(deliveries, arrivals)).toEqual(new Map([['twice/0', [READ]]]));
    expect(deliveries.asked).toEqual(['twice']);
  });

  it('are read again while the delivery is pending, and its status with them', async () => {
    const deliveries = delivery({ late: ['pending', 'pending', 'delivered'] });
    await read(deliveries, [arrival('late', 1)]);
    expect(deliveries.asked).toEqual(['late', 'late']);
    expect(deliveries.shown.get('late/0')?.status).toBe('delivered');
  });

  it('are read again when the API did not answer', async () => {
    const deliveries = delivery({ twice: ['delivered', null, 'delivered'] });
    const recorded = await read(deliveries, [arrival('twice', 1), arrival('twice', 5)]);
    expect(recorded.get('twice/0')).toEqual([READ]);
  });
});
