import { required } from '@posthorn/domain/required.ts';
import { createLoop, stopSoon, type Loop } from '@posthorn/platform/async/loop.ts';
import type { KnownPublisher } from '@posthorn/platform/mongo/messages/publishers.ts';
import {
  LEASE,
  publishPage,
  sweepInTurns,
  type SweepUnpublishedDeps,
  type Work,
} from './sweep-backlogs.ts';
import { backlogOf, observe, stepFor, type Backlog } from './when-taken-over.ts';

export interface UnpublishedSweep extends Loop {
  /**
   * When the oldest message that was found unpublished was accepted, in milliseconds since 1970; null
   * when there is none.
   */
  oldestAtMs: () => number | null;
}

const EVERY_MS = 2_000;
/**
 * Publishes what a gateway stored and did not publish: everything after its watermark that has no
 * delivery yet. It takes over a publisher first, so that only one process publishes its messages
 * (docs/decisions/0023-one-owner-of-a-backlog.md). It publishes first and stores its progress
 * afterwards, so that a crash repeats a step and never skips one. A tick does nothing while another
 * process holds the lease.
 */
export function createUnpublishedSweep(deps: SweepUnpublishedDeps): UnpublishedSweep {
  const stopping = new AbortController();
  const work: Work = {
    ...deps,
    oldestAtMs: new Map(),
    seen: new Map(),
    latestId: '',
    stopping: stopping.signal,
  };
  const loop = createLoop({
    name: 'sweep of unpublished messages',
    everyMs: EVERY_MS,
    run: () => sweepRound(work),
    logger: deps.logger,
  });
  return {
    start: loop.start,
    tick: loop.tick,
    oldestAtMs: () => (work.oldestAtMs.size > 0 ? Math.min(...work.oldestAtMs.values()) : null),
    async stop() {
      // A send that is cut short is no loss: the next holder of the lease publishes the same page, and the dispatcher
      // looks up what is late.
      stopping.abort();
      await stopSoon(loop);
      await deps.leases.release(LEASE, deps.holder).catch(() => undefined);
    },
  };
}

/** Dead publishers come first: nobody else publishes for them. */
async function sweepRound(work: Work): Promise<void> {
  const isHeld = await work.leases.hold(LEASE, work.holder);
  const listed = isHeld ? await work.publishers.list() : [];
  observeAll(work, listed);
  const own: Backlog[] = [];
  const stuck: KnownPublisher[] = [];
  for (const publisher of listed) {
    switch (stepOf(work, publisher)) {
      case 'sweep':
        own.push(backlogIn(work, publisher));
        break;
      case 'take_over_silent':
        if (await takeOver(work, publisher, 'heartbeat')) own.push(backlogIn(work, publisher));
        break;
      case 'take_over_stuck':
        // Its gateway notices within a second. It is swept when its heartbeat is old.
        await takeOver(work, publisher, 'watermark');
        break;
      case 'help':
        stuck.push(publisher);
        break;
      case 'leave':
        if (!publisher.isTakenOver) work.oldestAtMs.delete(publisher.id);
    }
  }
  await sweepInTurns(work, own);
  for (const publisher of stuck) await help(work, publisher);
}

function observeAll({ seen, oldestAtMs, monotonicMs }: Work, listed: KnownPublisher[]): void {
  const nowMs = monotonicMs();
  const before = new Map(seen);
  seen.clear();
  for (const publisher of listed) {
    seen.set(publisher.id, observe(publisher, before.get(publisher.id), nowMs));
  }
  for (const id of oldestAtMs.keys()) if (!seen.has(id)) oldestAtMs.delete(id);
}

function stepOf({ seen, monotonicMs }: Work, publisher: KnownPublisher) {
  return stepFor(publisher, observationOf(seen, publisher), monotonicMs());
}

function backlogIn({ seen }: Work, publisher: KnownPublisher): Backlog {
  return backlogOf(publisher, observationOf(seen, publisher));
}

function observationOf(seen: Work['seen'], { id }: KnownPublisher) {
  return required(seen, id, 'observation of the publisher');
}

async function takeOver(
  { publishers, logger }: Work,
  publisher: KnownPublisher,
  unchanged: 'heartbeat' | 'watermark',
): Promise<boolean> {
  const { id: publisherId, silentMs, stuckMs } = publisher;
  const isOwn = await publishers.takeOver(publisher, unchanged);
  const reason = unchanged === 'heartbeat' ? 'it is silent' : 'it waits for Kafka or the store';
  if (isOwn) logger.warn({ publisherId, silentMs, stuckMs, reason }, 'took over a publisher');
  return isOwn;
}

/** Publishes the oldest message only: it shows whether Kafka is away for all or only for that gateway. */
async function help(work: Work, publisher: KnownPublisher): Promise<void> {
  const { id: publisherId, watermark } = publisher;
  try {
    const page = await work.messages.pageOf({ publisherId, afterId: watermark, limit: 1 });
    await publishPage(work, publisherId, page);
    const observation = work.seen.get(publisherId);
    if (observation) observation.helped = { watermark, atMs: work.monotonicMs() };
  } catch (error) {
    work.logger.warn(
      { err: error, publisherId },
      'failed to publish for a publisher, trying again',
    );
  }
}
