import { createLoop } from '@posthorn/platform/async/loop.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { ResendMovedError, type ResendStore } from '@posthorn/platform/mongo/resends/resends.ts';
import { isOfOne, type Resend } from '@posthorn/domain/resend.ts';
import { sendParts, type SendPartsDeps } from './pages/send-resend-parts.ts';
import { sendPages } from './pages/send-resend-pages.ts';

export interface RunResendsDeps extends SendPartsDeps {
  resends: SendPartsDeps['resends'] & Pick<ResendStore, 'listRunning'>;
  logger: Logger;
}

export interface ResendRunner {
  start: () => void;
  /** Starts this resend now, unless too many run here. */
  wake: (resend: Resend) => void;
  /** Starts every running resend that no other process holds, up to the limits. */
  tick: () => Promise<void>;
  /** Resolves when this process works on no resend. */
  idle: () => Promise<void>;
  stop: () => Promise<void>;
}

/** Resends of a span of time may run for hours. The limit of a company leaves room for the others. */
const MAX_SPANS = { ofAll: 50, ofCompany: 5 };
const LIST_PAGE = 100;
const EVERY_MS = 1_000;

/**
 * Sends resends page by page, an app's in parts of one webhook each: store the page, mark its
 * deliveries, publish them, wait until each is settled, count them. When this process stops in
 * between, another one continues.
 */
export function createResendRunner(deps: RunResendsDeps): ResendRunner {
  const state: State = { ...deps, running: new Map(), started: new Set() };
  const loop = createLoop({
    name: 'resends',
    everyMs: EVERY_MS,
    run: (signal) => startAll(state, signal),
    logger: deps.logger,
  });
  return {
    start: loop.start,
    wake: (resend) => void workOn(state, resend, loop.signal),
    tick: loop.tick,
    idle: () => idle(state),
    async stop() {
      await loop.stop();
      await idle(state);
    },
  };
}

async function startAll(state: State, signal: AbortSignal): Promise<void> {
  for await (const resend of listAllRunning(state)) {
    if (signal.aborted) return;
    if (!state.running.has(resend.id)) void workOn(state, resend, signal);
  }
}

async function idle({ started }: State): Promise<void> {
  while (started.size > 0) await Promise.all(started);
}

interface State extends RunResendsDeps {
  running: Map<string, Running>;
  /** Work under way, from before its lease is taken. */
  started: Set<Promise<void>>;
}

/** Resolves when the work of this process on the resend has ended. Never rejects: a failure is logged. */
function workOn(state: State, resend: Resend, signal: AbortSignal): Promise<void> {
  const work = workOnLogged(state, resend, signal).finally(() => state.started.delete(work));
  state.started.add(work);
  return work;
}

async function workOnLogged(state: State, resend: Resend, signal: AbortSignal): Promise<void> {
  try {
    await startOrJoin(state, resend, signal);
  } catch (error) {
    if (signal.aborted || error instanceof ResendMovedError) return;
    const { id: resendId, companyId, webhookId, appId } = resend;
    state.logger.warn(
      { err: error, resendId, companyId, webhookId, appId },
      'resend failed, the next round tries again',
    );
  }
}

/**
 * The lease keeps other processes out. It is taken first, so that resends held by others do not count
 * here. The map keeps a round and a wake of this process from starting the same resend.
 */
async function startOrJoin(state: State, resend: Resend, signal: AbortSignal): Promise<void> {
  const { leases, holder, running } = state;
  const { id } = resend;
  if (!running.has(id)) {
    if (!mayStart(running, resend)) return;
    if (!(await leases.hold(leaseOf(id), holder))) return;
  }
  const same = running.get(id);
  if (same) return same.done;
  if (!mayStart(running, resend)) return leases.release(leaseOf(id), holder);
  const done = run(state, resend, signal).finally(() => running.delete(id));
  running.set(id, { resend, done });
  await done;
}

const leaseOf = (resendId: string): string => `resend/${resendId}`;

interface Running {
  resend: Resend;
  /** Rejects as its work does; whoever started it logs that. */
  done: Promise<void>;
}

/** A single delivery is quick and always starts, and so is an abort; they must not wait for spans. */
function mayStart(running: ReadonlyMap<string, Running>, resend: Resend): boolean {
  if (isOfOne(resend) || resend.abortAskedAtMs !== null) return true;
  const spans = [...running.values()].filter((each) => !isOfOne(each.resend));
  const own = spans.filter((each) => each.resend.companyId === resend.companyId);
  return spans.length < MAX_SPANS.ofAll && own.length < MAX_SPANS.ofCompany;
}

/** Reads page by page, so that resends held by other processes never hide the rest. */
async function* listAllRunning({ resends, logger }: RunResendsDeps): AsyncGenerator<Resend> {
  let afterId = '';
  for (;;) {
    const page = await resends.listRunning(afterId, LIST_PAGE).catch((error: unknown) => {
      logger.warn({ err: error }, 'cannot list resends');
      return [];
    });
    yield* page;
    afterId = page.at(-1)?.id ?? '';
    if (page.length < LIST_PAGE) return;
  }
}

async function run(deps: RunResendsDeps, listed: Resend, signal: AbortSignal): Promise<void> {
  const { leases, holder, resends } = deps;
  const lease = leaseOf(listed.id);
  try {
    // Read again under the lease: the listed one may be older than the work of the last holder.
    const resend = await resends.findOne(listed.companyId, listed.id);
    if (resend?.status !== 'running') return;
    const send = resend.appId === null ? sendPages : sendParts;
    await send(deps, resend, lease, signal);
  } finally {
    await leases.release(lease, holder);
  }
}
