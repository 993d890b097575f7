import { describe, expect, it } from '@jest/globals';
import { duringTests } from '../../../../../test/support/during-tests.ts';
import { openScratchDatabase } from '../../../../../test/support/stores/scratch-database.ts';
import { collection } from '../collections.ts';
import { dueResends } from '../webhooks/resends.ts';

const companyId = 'comp_a';
const before = { $gte: 'msg_1', $lt: 'msg_2' };

/** The queries of lists, resends and removals, with the filters of their stores. */
const QUERIES = {
  'messages of a company': ['messages', { _id: before, companyId }, { _id: -1 }],
  'messages of an app': ['messages', { _id: before, appId: 'app_1', companyId }, { _id: -1 }],
  'messages to a webhook': ['messages', { targets: 'wh_1', companyId }, { _id: -1 }],
  'messages with a tag': ['messages', { _id: before, tags: 'a', companyId }, { _id: -1 }],
  'messages with an external id': [
    'messages',
    { _id: before, externalId: 'own-1', companyId },
    { _id: -1 },
  ],
  'message by idempotency key': ['messages', { 'idempotency.key': 'k', companyId }, {}],
  'messages that failed': [
    'deliveries',
    { status: 'exhausted', messageId: before, companyId },
    { messageId: -1 },
  ],
  'deliveries that were cancelled for a reason': [
    'deliveries',
    { status: 'cancelled', reason: 'webhook_deleted', messageId: before, companyId },
    { messageId: -1, _id: -1 },
  ],
  'failed deliveries of a webhook': [
    'deliveries',
    { webhookId: 'wh_1', status: 'exhausted', _id: { $gt: 'dlv_1', $lt: 'dlv_2' }, companyId },
    { _id: 1 },
  ],
  'failed deliveries of the webhooks of an app': [
    'deliveries',
    {
      webhookId: { $in: ['wh_1', 'wh_2'] },
      status: 'exhausted',
      _id: { $gt: 'dlv_1', $lt: 'dlv_2' },
      companyId,
    },
    {},
  ],
  'enabled webhooks of an app': [
    'webhooks',
    { appId: 'app_1', disabled: false, _id: { $gt: 'wh_1' }, companyId },
    { _id: 1 },
  ],
  'pending deliveries of a webhook': [
    'deliveries',
    { webhookId: 'wh_1', status: 'pending', companyId },
    {},
  ],
  'pending deliveries of removed webhooks': [
    'deliveries',
    { webhookId: { $in: ['wh_1', 'wh_2'] }, status: 'pending', companyId },
    {},
  ],
  'resends that are due': ['resends', dueResends(1, []), { dueAt: 1 }],
  'resends that are due, without companies': [
    'resends',
    dueResends(1, ['comp_a', 'comp_b']),
    { dueAt: 1 },
  ],
  'projects of a company': ['projects', { companyId }, { _id: 1 }],
  'apps of a project': ['apps', { projectId: 'proj_1', companyId }, { _id: 1 }],
  'webhooks of a company': ['webhooks', { companyId }, { _id: 1 }],
  'webhooks of a project': ['webhooks', { projectId: 'proj_1', companyId }, {}],
  'keys of a company': ['apiKeys', { companyId }, { _id: 1 }],
} as const;

describe('the queries behind the API', () => {
  const database = duringTests(openScratchDatabase, ({ drop }) => drop());

  it.each(Object.entries(QUERIES))('%s: served by an index', async (_, [name, filter, sort]) => {
    const found = collection(database.db, name)
      .find(filter as object)
      .sort(sort);
    const plan = await found.explain('queryPlanner');
    const { winningPlan } = (plan as { queryPlanner: { winningPlan: unknown } }).queryPlanner;
    expect(JSON.stringify(winningPlan)).not.toMatch(/"COLLSCAN"|"SORT"/);
    expect(JSON.stringify(winningPlan)).toMatch(/"IXSCAN"|"EXPRESS_IXSCAN"/);
    // The `_id` index serves every sort, but reads the whole collection.
    expect(JSON.stringify(winningPlan)).not.toContain('"indexName":"_id_"');
  });
});
