import { createFifo, type Fifo } from '@posthorn/platform/async/fair-queue.ts';
import { unavailable } from '../api-error.ts';

/** Whose requests are limited: the company, and within it the portal session of a visitor. */
export interface LimitedOwner {
  companyId: string;
  portal?: { linkId: string } | undefined;
}

export interface RequestsUnderWay {
  /**
   * Runs the work once the company, and the visit of a visitor, has room for it. Throws ApiError 503, and does not run
   * it, when the request is over by then.
   */
  run: <Result>(
    owner: LimitedOwner,
    isOver: () => boolean,
    work: () => Promise<Result>,
  ) => Promise<Result>;
}

/**
 * Requests of one company that are under way at once; the others wait. MongoDB has 20 connections
 * (`maxPoolSize`), and queries get them in the order in which they ask: one company with 70 requests under
 * way made every query of the others wait. At 10 ms a request, 16 at once are 1,600 a second.
 */
const MAX_PER_COMPANY = 16;
/** A page asks for a few things at once, and a visitor must leave room for the platform. */
const MAX_PER_VISIT = 2;

export function createRequestsUnderWay(): RequestsUnderWay {
  const inCompany = createPlaces(MAX_PER_COMPANY);
  const inVisit = createPlaces(MAX_PER_VISIT);
  return {
    run({ companyId, portal }, isOver, work) {
      const run = (): ReturnType<typeof work> => inCompany(companyId, isOver, work);
      return portal ? inVisit(portal.linkId, isOver, run) : run();
    },
  };
}

interface Owner {
  running: number;
  waiting: Fifo<() => void>;
}

type RunInPlace = <Result>(
  ownerId: string,
  isOver: () => boolean,
  work: () => Promise<Result>,
) => Promise<Result>;

function createPlaces(maxOfOwner: number): RunInPlace {
  const owners = new Map<string, Owner>();

  async function enter(ownerId: string): Promise<Owner> {
    const owner = owners.get(ownerId) ?? { running: 0, waiting: createFifo() };
    owners.set(ownerId, owner);
    if (owner.running < maxOfOwner) owner.running += 1;
    else {
      await new Promise<void>((resolve) => {
        owner.waiting.push(resolve);
      });
    }
    return owner;
  }
  /** The place goes to the one that has waited longest. */
  function leave(ownerId: string, owner: Owner): void {
    const next = owner.waiting.shift();
    if (next) next();
    else if ((owner.running -= 1) === 0) owners.delete(ownerId);
  }

  return async (ownerId, isOver, work) => {
    const owner = await enter(ownerId);
    try {
      if (isOver()) throw unavailable('deadline_over');
      return await work();
    } finally {
      leave(ownerId, owner);
    }
  };
}
