import type { Logger } from '@posthorn/platform/service/logger.ts';
import {
  isOfOne,
  ResendMovedError,
  type Resend,
  type ResendStore,
} from '@posthorn/platform/mongo/resends/resends.ts';
import { sendParts, type SendPartsDeps } from './send-resend-parts.ts';
import { LEASE_MS } from './send-resend-page.ts';
import { sendPages } from './send-resend-pages.ts';

export interface RunResendsDeps extends SendPartsDeps {
  resends: SendPartsDeps['resends'] & Pick<ResendStore, 'listRunning'>;
  logger: Logger;
}

export interface ResendRunner {
  start: () => void;
  /** Begins this one now, if there is room. */
  wake: (resend: Resend) => void;
  /** Begins everything that runs, is not held by another process and has room. */
  tick: () => Promise<void>;
  /** Resolves when nothing is worked on here. */
  idle: () => Promise<void>;
  stop: () => Promise<void>;
}

/** Spans may run for hours; the share of a company leaves room for the others. */
const MAX_SPANS = { ofAll: 50, ofCompany: 5 };
const LIST_PAGE = 100;
const EVERY_MS = 1_000;

/**
 * Goes through resends page by page, an app's in parts of one webhook each: note the page, mark its
 * deliveries, publish them, wait until each is settled, count them. Whatever stops in between is
 * taken up by the next process.
 */
export function createResendRunner(deps: RunResendsDeps): ResendRunner {
  const state: State = {
    ...deps,
    running: new Map(),
    begun: new Set(),
    closing: new AbortController(),
  };
  let timer: NodeJS.Timeout | undefined;

  async function tick(): Promise<void> {
    for await (const resend of allRunning(deps)) {
      if (!state.running.has(resend._id)) void workOn(state, resend);
    }
  }

  return {
    start() {
      timer = setInterval(() => void tick(), EVERY_MS);
    },
    wake: (resend) => void workOn(state, resend),
    tick,
    idle: () => idle(state),
    async stop() {
      clearInterval(timer);
      state.closing.abort();
      await idle(state);
    },
  };
}

async function idle({ begun }: State): Promise<void> {
  while (begun.size > 0) await Promise.all(begun);
}

interface State extends RunResendsDeps {
  running: Map<string, Running>;
  /** Work that was begun, from the question for its lease on. */
  begun: Set<Promise<void>>;
  closing: AbortController;
}

/** Resolves when the resend has ended here, well or not, or is another process's. */
function workOn(state: State, resend: Resend): Promise<void> {
  const work = tryToWorkOn(state, resend).finally(() => state.begun.delete(work));
  state.begun.add(work);
  return work;
}

async function tryToWorkOn(state: State, resend: Resend): Promise<void> {
  try {
    await beginOrJoin(state, resend);
  } catch (error) {
    if (state.closing.signal.aborted || error instanceof ResendMovedError) return;
    state.logger.warn({ err: error, resendId: resend._id }, 'resend waits for the next round');
  }
}

/**
 * The lease tells processes apart and comes first: what others hold takes no room here. The map
 * tells a round and a wake of this process apart.
 */
async function beginOrJoin(state: State, resend: Resend): Promise<void> {
  const { leases, holder, running, closing } = state;
  const { _id: id } = resend;
  if (!running.has(id)) {
    if (!hasRoom(running, resend)) return;
    if (!(await leases.hold(leaseOf(id), holder, LEASE_MS))) return;
  }
  const twin = running.get(id);
  if (twin) return twin.done;
  if (!hasRoom(running, resend)) return leases.release(leaseOf(id), holder);
  const done = run(state, resend, closing.signal).finally(() => running.delete(id));
  running.set(id, { resend, done });
  await done;
}

const leaseOf = (resendId: string): string => `resend/${resendId}`;

interface Running {
  resend: Resend;
  /** Rejects as its work does; whoever began it reports that. */
  done: Promise<void>;
}

/** A single delivery is quick and always begun; it must not wait behind spans. */
function hasRoom(running: ReadonlyMap<string, Running>, resend: Resend): boolean {
  if (isOfOne(resend)) return true;
  const spans = [...running.values()].filter((each) => !isOfOne(each.resend));
  const own = spans.filter((each) => each.resend.companyId === resend.companyId);
  return spans.length < MAX_SPANS.ofAll && own.length < MAX_SPANS.ofCompany;
}

/** Page by page, so that resends which other processes hold never hide the rest. */
async function* allRunning({ resends, logger }: RunResendsDeps): AsyncGenerator<Resend> {
  let afterId = '';
  for (;;) {
    const page = await resends.listRunning(afterId, LIST_PAGE).catch((error: unknown) => {
      logger.warn({ err: error }, 'resends cannot be read');
      return [];
    });
    yield* page;
    afterId = page.at(-1)?._id ?? '';
    if (page.length < LIST_PAGE) return;
  }
}

async function run(deps: RunResendsDeps, listed: Resend, signal: AbortSignal): Promise<void> {
  const { leases, holder, resends } = deps;
  const lease = leaseOf(listed._id);
  try {
    // Read again under the lease: the list may be older than the last holder's work.
    const resend = await resends.findOne(listed.companyId, listed._id);
    if (resend?.status !== 'running') return;
    const send = resend.appId === undefined ? sendPages : sendParts;
    await send(deps, resend, lease, signal);
  } finally {
    await leases.release(lease, holder);
  }
}
