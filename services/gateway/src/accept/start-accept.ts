import type { MemoryBudgets } from '@posthorn/platform/memory/memory-budgets.ts';
import { memoryShare } from '@posthorn/platform/memory/memory-shares.ts';
import type { Database } from '@posthorn/platform/mongo/days/days.ts';
import { createDeliveryStore } from '@posthorn/platform/mongo/messages/deliveries.ts';
import { createMessageQueries } from '@posthorn/platform/mongo/messages/message-queries.ts';
import type { WebhookStore } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import {
  monotonicClockMs,
  systemClockMs,
  systemIds,
} from '@posthorn/platform/service/clock-and-ids.ts';
import type { ServiceContext } from '@posthorn/platform/service/run-service.ts';
import { openMessageStats } from '@posthorn/platform/mongo/messages/write-stats.ts';
import type { Spans } from '@posthorn/platform/service/spans.ts';
import type { Vault } from '@posthorn/platform/security/vault.ts';
import type { GatewayConfig } from '../config.ts';
import { ApiError } from '../api-error.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { NotStoredByApp } from '../projects/apps.ts';
import type { Invalidations } from '../start.ts';
import { type AcceptMessage, createAcceptMessage } from './accept-message.ts';
import { createSealedResponses } from './build-message.ts';
import { createIdempotentAccept, type IdempotentAccept } from './idempotency.ts';
import { createTargetResolver, type TargetResolver } from './targets.ts';

export interface Accept {
  accept: AcceptMessage['accept'];
  acceptIdempotent: IdempotentAccept;
  acceptQueue: Pick<AcceptMessage, 'hasRoom'>;
}

interface OpenAcceptDeps {
  db: Database;
  /** The same for what requests read. */
  requestDb: Database;
  vault: Vault;
  webhooks: WebhookStore;
  notStoredByApp: NotStoredByApp;
  invalidations: Pick<Invalidations, 'addCache'>;
  outbox: Outbox;
  budgets: MemoryBudgets;
  /** Null when nothing is traced. */
  spans: Spans | null;
}

type Context = ServiceContext<GatewayConfig>;

/** Opens the acceptance of messages, with its cache and its memory budgets. A stop waits for the running inserts. */
export function openAccept(context: Context, deps: OpenAcceptDeps): Accept {
  const { config, logger, lifecycle, registry } = context;
  const { db, requestDb, outbox, budgets, spans } = deps;
  const responses = createSealedResponses(deps.vault);
  const acceptQueueBytes = memoryShare('gateway', 'accept_queue', config.MEMORY_MIB);
  const untraced = createAcceptMessage({
    targets: openTargets(context, deps),
    deliveries: createDeliveryStore(db),
    outbox,
    countMessage: openMessageStats(context, { db, budgets }),
    publisherId: outbox.publisherId,
    responses,
    acceptQueueBytes,
    newId: systemIds,
    monotonicMs: monotonicClockMs,
    logger,
  });
  const accept = spans ? traceAccept(untraced.accept, spans, systemClockMs) : untraced.accept;
  budgets.add('accept_queue', acceptQueueBytes, untraced.usedBytes);
  lifecycle.onStop('accept', untraced.idle);
  const acceptIdempotent = createIdempotentAccept({
    accept,
    messages: createMessageQueries(requestDb),
    responses,
    registry,
  });
  return { accept, acceptIdempotent, acceptQueue: { hasRoom: untraced.hasRoom } };
}

function openTargets(
  { config }: Context,
  { webhooks, notStoredByApp, invalidations, budgets }: OpenAcceptDeps,
): TargetResolver {
  const cacheBytes = memoryShare('gateway', 'target_cache', config.MEMORY_MIB);
  const targets = createTargetResolver({
    cacheBytes,
    maxTargets: config.QUOTA_TARGETS_PER_MESSAGE,
    webhooks,
    notStoredByApp,
  });
  budgets.add('target_cache', cacheBytes, targets.usedBytes);
  invalidations.addCache({ forget: targets.forget, forgetAll: targets.forgetAll });
  return targets;
}

/**
 * Makes a span of each acceptance. What follows of the message is below it: the message is stored with the `traceparent` of
 * the span in place of the client's.
 */
export function traceAccept(
  accept: AcceptMessage['accept'],
  spans: Spans,
  nowMs: () => number,
): AcceptMessage['accept'] {
  return async (request, takeTurn) => {
    const span = spans.begin({
      step: 'accept',
      parent: request.traceparent,
      startMs: nowMs(),
      attributes: {
        'posthorn.company.id': request.companyId,
        'posthorn.app.id': request.address.kind === 'app' ? request.address.appId : undefined,
        'posthorn.request.id': request.requestId,
      },
    });
    if (!span) return accept(request, takeTurn);
    try {
      const accepted = await accept({ ...request, traceparent: span.traceparent }, takeTurn);
      const { id, targets } = accepted?.message ?? {};
      const attributes = { 'posthorn.message.id': id, 'posthorn.targets': targets?.length };
      span.end({ endMs: nowMs(), attributes });
      return accepted;
    } catch (error) {
      const failure = error instanceof ApiError ? error.code : 'internal_error';
      span.end({ endMs: nowMs(), failure });
      throw error;
    }
  };
}
