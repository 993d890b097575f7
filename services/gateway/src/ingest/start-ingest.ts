import { createCompanyLife } from '@posthorn/platform/mongo/companies/companies.ts';
import { createMessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import { createWebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import { monotonicClockMs as monotonicMs } from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import type { IngestConfig } from '../config.ts';
import {
  openAccept,
  openBasis,
  openOutbox,
  openPayloadChecks,
  openRateLimits,
  openUids,
} from '../open-acceptance.ts';
import { openIngest } from './open-ingest.ts';

/**
 * Opens the process that reads topics of other programs and accepts their records, as a gateway accepts requests. It has
 * the management port and no API: nothing that somebody writes into a topic costs a request.
 */
export async function startIngest(context: ServiceContext<IngestConfig>): Promise<void> {
  const basis = await openBasis(context, 'ingest');
  const { requestDb: db, vault, nowMs } = basis;
  const company = context.config.RATE_LIMIT_COMPANY_PER_MINUTE;
  const limits = openRateLimits(basis, { company, visit: 0, address: 0, wrongKeys: 0 });
  const uids = openUids(basis);
  const messages = createMessageQueries(db);
  const outbox = await openOutbox(basis);
  const webhooks = createWebhookStore(db, vault);
  const payloadChecks = openPayloadChecks(basis);
  const parts = { webhooks, messages, payloadChecks };
  const { acceptMany } = await openAccept(basis, parts, outbox);
  const gateway = { acceptMany, db, messages, uids, nowMs };
  openIngest({ ...basis, limits, gateway, life: createCompanyLife(db, basis.nowMs), monotonicMs });
}
