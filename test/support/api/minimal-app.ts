import { Router } from 'express';
import { pino } from 'pino';
import type { createApp } from '../../../services/gateway/src/app.ts';
import {
  addressOf,
  createRequestMemory,
} from '../../../services/gateway/src/http/request-memory.ts';
import type { Route } from '../../../services/gateway/src/http/route.ts';
import { createRequestsUnderWay } from '../../../services/gateway/src/limits/requests-under-way.ts';

/** What the app needs beside its routes, without stores and limits. Nobody can call it before `identify` is another. */
export function minimalAppDeps(routes: readonly Route[]): Parameters<typeof createApp>[0] {
  return {
    routes,
    clock: { isRight: () => true },
    limits: {
      limitAddress: () => undefined,
      limitCompany: () => undefined,
      countMore: () => undefined,
    },
    trustedProxies: 0,
    metrics: { observe: () => () => undefined },
    memory: createRequestMemory(1_000_000),
    unknownCallers: createRequestMemory(1_000_000, addressOf),
    slices: { next: () => Promise.resolve() },
    throttle: {
      note: () => undefined,
      charge: () => undefined,
      chargeBytes: () => undefined,
      waitMs: () => 0,
    },
    underWay: createRequestsUnderWay(),
    deadlines: { within: (_response, step) => step, signalOf: () => AbortSignal.abort() },
    identify: () => Promise.reject(new Error('not called')),
    dashboard: { router: Router(), pages: [] },
    resolveUids: (named) => named,
    confineToApp: () => Promise.resolve(),
    findPublicKeys: () => Promise.resolve(null),
    recordRequest: (_route, _request, handle) => handle(Promise.resolve()),
    createOnce: (_request, { create }) =>
      create({ newId: () => 'id_new', seed: () => Promise.resolve(Buffer.alloc(32)) }, false),
    logger: pino({ enabled: false }),
  };
}
