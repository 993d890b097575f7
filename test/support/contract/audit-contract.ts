import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NO_COMPANY, type AuditEvent } from '@posthorn/domain/audit.ts';
import type { AuditFilter, AuditStore } from '@posthorn/platform/mongo/companies/audit-log.ts';
import { createIdFactory } from '@posthorn/domain/ids.ts';

export interface OpenAudit {
  store: AuditStore;
  close: () => Promise<void>;
}

const FIRST_MS = 1_700_000_000_000;

let nowMs = FIRST_MS;
const newId = createIdFactory({ nowMs: () => nowMs, randomBytes: (size) => Buffer.alloc(size) });

/** Returns an event of the next second. */
function nextEvent(fields: Partial<AuditEvent> = {}): AuditEvent {
  nowMs += 1_000;
  return {
    id: newId('aud'),
    companyId: 'comp_a',
    action: 'webhook.updated',
    actor: { kind: 'apiKey', keyId: 'key_1' },
    target: { kind: 'webhook', id: 'wh_1' },
    clientAddress: '192.0.2.7',
    requestId: 'request-1',
    outcome: 'started',
    code: null,
    changes: [{ field: 'customHeaders.X.$A', before: null, after: ['a', 'b'] }],
    count: null,
    createdAtMs: nowMs,
    completedAtMs: null,
    ...fields,
  };
}

/** What every AuditStore does. */
export function auditContract(open: () => Promise<OpenAudit>): void {
  describe('the audit log', () => {
    let opened: OpenAudit;
    let store: AuditStore;
    const events = [
      nextEvent(),
      nextEvent({ actor: { kind: 'admin' }, clientAddress: null, requestId: null }),
      nextEvent({ action: 'app.deleted', target: { kind: 'app', id: 'app_1' } }),
      nextEvent({ actor: { kind: 'apiKey', keyId: 'key_2' } }),
      nextEvent({ actor: { kind: 'system' }, target: { kind: 'webhook', id: null } }),
    ];
    const theirs = nextEvent({ companyId: 'comp_b' });
    const ofNobody = nextEvent({ companyId: NO_COMPANY });

    beforeAll(async () => {
      opened = await open();
      ({ store } = opened);
      for (const event of [...events, theirs, ofNobody]) await store.insert(event);
    });

    afterAll(() => opened.close());

    const list = async (filter: AuditFilter = {}) => {
      const page = await store.list('comp_a', { limit: 100, maxChars: 1_000_000, ...filter });
      expect(page.nextCursor).toBeNull();
      return page.events;
    };
    const indexesOf = async (filter: AuditFilter) =>
      (await list(filter)).map((each) => events.findIndex(({ id }) => id === each.id));

    it('is read newest first, by company', async () => {
      expect(await list()).toEqual(events.toReversed());
    });

    it.each<[AuditFilter, number[]]>([
      [{ action: 'app.deleted' }, [2]],
      [{ actor: 'key_2' }, [3]],
      [{ actor: 'admin' }, [1]],
      [{ actor: 'system' }, [4]],
      [{ targetId: 'wh_1' }, [3, 1, 0]],
      [{ targetId: 'wh_1', actor: 'key_1', action: 'webhook.updated' }, [0]],
      [{ fromMs: FIRST_MS + 2_000, toMs: FIRST_MS + 4_000 }, [3, 2, 1]],
      [{ fromMs: FIRST_MS + 2_001, toMs: FIRST_MS + 3_999 }, [2]],
    ])('is filtered by %j', async (filter, expected) => {
      expect(await indexesOf(filter)).toEqual(expected);
    });

    it('comes in pages, each bounded by the length of its changes too', async () => {
      const chars = JSON.stringify(events[0]?.changes).length;
      for (const bounds of [
        { limit: 2, maxChars: 1_000_000 },
        { limit: 100, maxChars: chars + 1 },
      ]) {
        const seen: string[] = [];
        let cursor: string | undefined;
        for (;;) {
          const page = await store.list('comp_a', { ...bounds, cursor });
          expect(page.events.length).toBeLessThanOrEqual(2);
          seen.push(...page.events.map(({ id }) => id));
          if (page.nextCursor === null) break;
          cursor = page.nextCursor;
        }
        expect(seen).toEqual(events.map(({ id }) => id).toReversed());
      }
    });

    it('is exported oldest first: of one company, or of all and of the installation', async () => {
      const mine = await Array.fromAsync(store.export('comp_a', { fromMs: FIRST_MS + 3_000 }));
      expect(mine).toEqual(events.slice(2));
      const all = await Array.fromAsync(store.export(null, { fromMs: FIRST_MS + 5_000 }));
      expect(all).toEqual([events[4], theirs, ofNobody]);
    });

    it('completes an event of the company, and of no other', async () => {
      const event = nextEvent({ target: { kind: 'webhook', id: null } });
      await store.insert(event);
      const changes = [{ field: 'name', before: 'Old', after: 'New' }];
      const action = 'webhook.created';
      const ending = { action, outcome: 'done', code: null, changes, count: 1 } as const;
      const completion = { ...ending, targetId: 'wh_new', completedAtMs: nowMs + 5 };
      await store.complete('comp_b', event.id, completion);
      expect((await list())[0]).toEqual(event);
      await store.complete('comp_a', event.id, completion);
      const target = { kind: 'webhook', id: 'wh_new' };
      const completed = { ...event, ...ending, target, completedAtMs: nowMs + 5 };
      expect((await list())[0]).toEqual(completed);
    });
  });
}
