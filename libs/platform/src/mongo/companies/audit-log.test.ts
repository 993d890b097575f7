import { beforeEach, describe, expect, test } from '@jest/globals';
import type { AuditEvent } from '@posthorn/domain/audit.ts';
import { countingIds } from '../../../../../test/support/samples/sample-message.ts';
import { type AuditedAction, type AuditLog, createAuditLog } from './audit-log.ts';

const ACTION: AuditedAction = {
  companyId: 'comp_a',
  action: 'webhook.updated',
  actor: { kind: 'apiKey', keyId: 'key_1' },
  target: { kind: 'webhook', id: 'wh_1' },
  clientAddress: '192.0.2.7',
  requestId: 'request-1',
  changes: [{ field: 'name', before: null, after: 'Asked' }],
};
const CHANGES = [{ field: 'name', before: 'Old', after: 'New' }];

class Refusal extends Error {}

let stored: Map<string, AuditEvent>;
let isAway: { insert: boolean; complete: boolean };
let notCompleted: string[];
let counted: string[];
let log: AuditLog;

beforeEach(() => {
  stored = new Map();
  [notCompleted, counted] = [[], []];
  isAway = { insert: false, complete: false };
  log = createAuditLog({
    store: {
      insert(event) {
        if (isAway.insert) return Promise.reject(new Error('MongoDB is away'));
        stored.set(event.id, event);
        return Promise.resolve();
      },
      complete(_companyId, id, { targetId, ...ended }) {
        if (isAway.complete) return Promise.reject(new Error('MongoDB is away'));
        const event = stored.get(id);
        if (!event) return Promise.reject(new Error(`no event ${id}`));
        stored.set(id, { ...event, ...ended, target: { ...event.target, id: targetId } });
        return Promise.resolve();
      },
    },
    refusalOf: (error) => (error instanceof Refusal ? error.message : null),
    observer: {
      stored: (outcome) => counted.push(outcome),
      notCompleted: ({ outcome }) => notCompleted.push(outcome),
    },
    newId: countingIds(),
    nowMs: () => 5_000,
  });
});

const events = (): AuditEvent[] => [...stored.values()];

describe('a change [security]', () => {
  test('is stored as started before it is made, and as done after it', async () => {
    const change = log.recordChange(
      ACTION,
      () => Promise.resolve(events()),
      () => ({ changes: CHANGES }),
    );
    expect(await change).toMatchObject([{ ...ACTION, outcome: 'started', completedAtMs: null }]);
    const done = { ...ACTION, changes: CHANGES, outcome: 'done', code: null, completedAtMs: 5_000 };
    expect(events()).toMatchObject([done]);
    expect(counted).toEqual(['started', 'done']);
  });

  test('is not made when its event cannot be stored', async () => {
    isAway.insert = true;
    let isMade = false;
    const change = log.recordChange(ACTION, () => Promise.resolve((isMade = true)));
    await expect(change).rejects.toThrow('MongoDB is away');
    expect([isMade, events(), counted]).toEqual([false, [], []]);
  });

  test('that is refused is stored as failed, with the code and what was asked for', async () => {
    const refuse = () => Promise.reject(new Refusal('not_found'));
    await expect(log.recordChange(ACTION, refuse)).rejects.toThrow(Refusal);
    expect(events()).toMatchObject([{ ...ACTION, outcome: 'failed', code: 'not_found' }]);
  });

  test('stays started when nobody knows whether it was made', async () => {
    const lose = () => Promise.reject(new Error('no answer'));
    await expect(log.recordChange(ACTION, lose)).rejects.toThrow('no answer');
    expect(events()).toMatchObject([{ ...ACTION, outcome: 'started', completedAtMs: null }]);
    expect(counted).toEqual(['started']);
  });

  test('that was made is returned even if its event cannot be completed, which is noticed', async () => {
    isAway.complete = true;
    expect(await log.recordChange(ACTION, () => Promise.resolve('made'))).toBe('made');
    expect(events()).toMatchObject([{ outcome: 'started' }]);
    expect(notCompleted).toEqual(['done']);
  });

  test('of something new gets the id of what was created', async () => {
    const target = { kind: 'webhook', id: null } as const;
    const make = () => Promise.resolve('wh_new');
    await log.recordChange({ ...ACTION, target }, make, (createdId) => ({ createdId }));
    expect(events()).toMatchObject([{ target: { kind: 'webhook', id: 'wh_new' } }]);
  });
});

describe('a change that begins with reads [security]', () => {
  test('reads while its event is stored, and is made after it', async () => {
    const seen: string[] = [];
    const change = log.recordAfterReads(ACTION, async (isStored) => {
      seen.push('reads');
      await isStored;
      seen.push(`changes with ${events().length}`);
    });
    await change;
    expect(seen).toEqual(['reads', 'changes with 1']);
    expect(events()).toMatchObject([{ outcome: 'done' }]);
  });

  test('that its reads refuse is stored as failed', async () => {
    const refuse = () => Promise.reject(new Refusal('not_found'));
    await expect(log.recordAfterReads(ACTION, refuse)).rejects.toThrow(Refusal);
    expect(events()).toMatchObject([{ outcome: 'failed', code: 'not_found' }]);
  });

  test('fails with the store when its event cannot be stored', async () => {
    isAway.insert = true;
    const make = async (isStored: Promise<unknown>): Promise<void> => void (await isStored);
    await expect(log.recordAfterReads(ACTION, make)).rejects.toThrow('MongoDB is away');
    expect(events()).toEqual([]);
  });
});

describe('a read [security]', () => {
  test('is stored at once with the number of things', async () => {
    await log.recordRead(ACTION, 3);
    expect(events()).toMatchObject([{ outcome: 'done', count: 3, completedAtMs: 5_000 }]);
    isAway.insert = true;
    await expect(log.recordRead(ACTION, 3)).rejects.toThrow('MongoDB is away');
  });

  async function* parts(): AsyncGenerator<number[]> {
    for (const part of [[1, 2], [3], [4]]) yield await Promise.resolve(part);
  }

  test('a read in parts is stored before the first one, and with their number after the last one', async () => {
    const seen: unknown[] = [];
    for await (const part of log.recordParts(ACTION, parts())) {
      seen.push([part, events()[0]?.outcome]);
    }
    expect(seen).toEqual([[1, 2], [3], [4]].map((part) => [part, 'started']));
    expect(events()).toMatchObject([{ outcome: 'done', count: 4 }]);
  });

  test('a read in parts that the client leaves early has the number that was shown', async () => {
    for await (const part of log.recordParts(ACTION, parts())) if (part[0] === 3) break;
    expect(events()).toMatchObject([{ outcome: 'done', count: 3 }]);
  });

  test('a read in parts shows nothing when its event cannot be stored', async () => {
    isAway.insert = true;
    const reading = log.recordParts(ACTION, parts())[Symbol.asyncIterator]();
    await expect(reading.next()).rejects.toThrow('MongoDB is away');
  });
});
