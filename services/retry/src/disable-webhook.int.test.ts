import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { duringTests } from '../../../test/support/during-tests.ts';
import { collectLogLines } from '../../../test/support/sources/log-lines.ts';
import { openScratchDatabase } from '../../../test/support/stores/scratch-database.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import { createAuditStore } from '@posthorn/platform/mongo/companies/audit-log.ts';
import type { WebhookDocument } from '@posthorn/platform/mongo/documents.ts';
import { type DisableWebhook, openDisableWebhook } from './disable-webhook.ts';

const CHANGED_MS = Date.parse('2026-11-20T00:00:00Z');
const SEEN = { id: 'wh_1', companyId: 'comp_a', changedAtMs: CHANGED_MS };

const database = duringTests(openScratchDatabase, ({ drop }) => drop());
let disable: DisableWebhook;

beforeAll(() => {
  const { logger } = collectLogLines();
  disable = openDisableWebhook({ registry: new Registry(), logger }, database.db, Date.now);
});
beforeEach(async () => {
  for (const name of ['webhooks', 'auditEvents'] as const)
    await collection(database.db, name).deleteMany({});
  await collection(database.db, 'webhooks').insertOne({
    _id: 'wh_1',
    companyId: 'comp_a',
    disabled: false,
    updatedAt: new Date(CHANGED_MS),
    failing: { since: new Date(CHANGED_MS), disableAt: null },
  } as WebhookDocument);
});

const stored = () => collection(database.db, 'webhooks').findOne({ _id: 'wh_1' });
async function events() {
  const page = { limit: 9, maxChars: 1_000 };
  return (await createAuditStore(database.db).list('comp_a', page)).events;
}

describe('a webhook that Posthorn disables', () => {
  it('is another version from then on, with the reason, and nothing is told of its failures', async () => {
    expect(await disable(SEEN, 'gone')).toBe(true);
    const webhook = await stored();
    expect(webhook).toMatchObject({ disabled: true, disabledReason: 'gone' });
    expect(webhook?.updatedAt.getTime()).toBeGreaterThan(CHANGED_MS);
    expect(webhook).not.toHaveProperty('failing');
  });

  it('has a note, by which what waits for a hold or an ordering key is cancelled', async () => {
    await disable(SEEN, 'gone');
    const note = await collection(database.db, 'holdNotes').findOne({ _id: 'wh_1' });
    expect(note).toMatchObject({ companyId: 'comp_a', kind: 'webhook' });
  });

  it('is in the audit log as changed by the system', async () => {
    await disable(SEEN, 'control_header');
    expect(await events()).toMatchObject([
      {
        action: 'webhook.updated',
        actor: { kind: 'system' },
        target: { kind: 'webhook', id: 'wh_1' },
        outcome: 'done',
        changes: [
          { field: 'disabled', before: false, after: true },
          { field: 'disabledReason', before: null, after: 'control_header' },
        ],
      },
    ]);
  });

  it.each([
    ['a client changed it meanwhile', { ...SEEN, changedAtMs: CHANGED_MS - 1 }],
    ['it is of another company', { ...SEEN, companyId: 'comp_b' }],
    ['it was deleted', { ...SEEN, id: 'wh_2' }],
  ])('stays as it is when %s', async (_why, seen) => {
    expect(await disable(seen, 'gone')).toBe(false);
    expect(await stored()).toMatchObject({ disabled: false, updatedAt: new Date(CHANGED_MS) });
    for (const { changes } of await events()) expect(changes).toEqual([]);
  });
});
