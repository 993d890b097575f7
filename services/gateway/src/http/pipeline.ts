import type { Request, RequestHandler, Response } from 'express';
import { assertAllowed, type ConfineToApp, type NamedIds } from '../keys/rights.ts';
import type { RateLimits } from '../limits/rate-limits.ts';
import type { RequestsUnderWay } from '../limits/requests-under-way.ts';
import { forOneApp, overloaded, unavailable } from '../api-error.ts';
import type { RecordRequest } from './audit-requests.ts';
import { assertJson, createReceiveBody, readBody, readHead, readRawFields } from './body.ts';
import type { RequestDeadlines } from './request-deadlines.ts';
import { REQUEST_BYTES, type RequestMemory } from './request-memory.ts';
import { type ApiResponse, type Body, NO_FIELDS, type Route } from './route.ts';
import type { Caller } from '../keys/rights.ts';
import { beginPages, type Pages, sendJson, sendPages } from './send-json.ts';
import type { CompanyRests, TakeTurn, Turns } from '../limits/turns.ts';

/** Returns whose request it is, by its API key or its session. Throws what `Authenticate` throws. */
export type Identify = (request: Request) => Promise<Caller>;

export interface RouteHandlerDeps {
  identify: Identify;
  limits: Pick<RateLimits, 'limitCompany'>;
  memory: Pick<RequestMemory, 'tryReserve' | 'reserve' | 'keepUntil' | 'reserveOrRefuse'>;
  /** Counts what waits for the look-up of its key. */
  unknownCallers: Pick<RequestMemory, 'countWhile'>;
  turns: Pick<Turns, 'take'>;
  rests: Pick<CompanyRests, 'note' | 'charge' | 'chargeBytes' | 'restMs'>;
  underWay: RequestsUnderWay;
  confineToApp: ConfineToApp;
  deadlines: Pick<RequestDeadlines, 'within'>;
  recordRequest: RecordRequest;
}

/** Returns the handlers of a route, in order. The key is checked before any byte of the body is read. */
export function handlersOf(route: Route, deps: RouteHandlerDeps): RequestHandler[] {
  const { limits, memory, unknownCallers, deadlines, rests } = deps;
  const identify: RequestHandler = async (request, response, next) => {
    const identifying = unknownCallers.countWhile(response, REQUEST_BYTES, () =>
      deps.identify(request),
    );
    response.locals.caller = await deadlines.within(response, identifying);
    assertAllowed(route, response.locals.caller as Caller);
    next();
  };
  const admit: RequestHandler = (_request, response, next) => {
    const { companyId } = response.locals.caller as Caller;
    rests.note(companyId);
    rests.charge(companyId, REQUEST_MS);
    if (!memory.tryReserve(response, REQUEST_BYTES)) throw overloaded();
    next();
  };
  const requireBody: RequestHandler = (request, response, next) => {
    if (!route.isBodyOptional || hasBody(request)) assertJson(request, response, next);
    else next();
  };
  const respond: RequestHandler = async (request, response) => {
    const work = placed(route, response, deps, () =>
      callRoute(route, request, response, deps).then(begin),
    );
    memory.keepUntil(response, work);
    const { sent, rest } = await deadlines.within(response, work);
    const charge = (bytes: number): void => {
      rests.chargeBytes((response.locals.caller as Caller).companyId, bytes);
    };
    if (rest) {
      await sendPages(response, route.response, rest, charge);
      return;
    }
    charge(await sendResponse(response, route, sent));
    // What the client has not received yet; usually nothing.
    memory.reserve(response, response.writableLength);
  };
  const known = [identify, limits.limitCompany, admit];
  return route.body
    ? [...known, requireBody, createReceiveBody(memory), respond]
    : [...known, respond];
}

function placed<Result>(
  { queue }: Route,
  response: Response,
  { underWay }: RouteHandlerDeps,
  work: () => Promise<Result>,
): Promise<Result> {
  if (queue) return work();
  const caller = response.locals.caller as Caller;
  return underWay.run(caller, () => response.writableEnded || response.destroyed, work);
}

interface Begun {
  sent: ApiResponse;
  /** The whole list, when it is sent part by part. */
  rest: Pages | null;
}

/** Reads as much of a list as shows whether it is a long one. What fails here is an ordinary failure. */
async function begin(sent: ApiResponse): Promise<Begun> {
  if (!sent.pages) return { sent, rest: null };
  const { first, rest } = await beginPages(sent.pages);
  return { sent: { data: first }, rest };
}

/** RFC 9112, 6: a request has a body when one of these two headers says so. */
function hasBody(request: Request): boolean {
  const length = request.get('content-length');
  return request.get('transfer-encoding') !== undefined || (length ?? '0') !== '0';
}

/** What the shortest request takes of the process, about. A message of 1 KB takes 0.25 ms (docs/performance.md). */
const REQUEST_MS = 0.2;

/** To check one of this size takes a fifth of a millisecond, one of 256 KiB 3 ms. */
const LARGE_BODY_BYTES = 16_384;

type CallDeps = Pick<
  RouteHandlerDeps,
  'memory' | 'turns' | 'rests' | 'confineToApp' | 'recordRequest'
>;

async function callRoute(
  route: Route,
  request: Request,
  response: Response,
  { memory, turns, rests, confineToApp, recordRequest }: CallDeps,
): Promise<ApiResponse> {
  const header = (name: string): string | undefined => request.get(name);
  const head = readHead({ queryText: queryOf(request.url), header }, route);
  const caller = response.locals.caller as Caller;
  const params = request.params as Record<string, string>;
  const takeTurn = turnsFor(caller, response, { turns, rests });
  const confine = confinementOf(caller, confineToApp, takeTurn);
  await confine?.(params);
  // Work that takes no turns of its own waits too: many short requests are a company's work as well.
  if (!route.queue && rests.restMs(caller.companyId) > 0) await takeTurn();
  const bytes = bytesOf(route, request);
  if (route.queue?.hasRoom(caller.companyId, bytes.length) === false) throw overloaded();
  if (bytes.length >= LARGE_BODY_BYTES) {
    await takeTurn();
    rests.chargeBytes(caller.companyId, bytes.length);
  }
  const schema = route.body ?? NO_FIELDS;
  const stored = route.problemsOf
    ? await route.problemsOf({ caller, params, fields: readRawFields(bytes, schema) })
    : [];
  const body = readBody(bytes, schema, [...head.problems, ...stored]);
  await confine?.(head.query);
  await confine?.(body.value);
  if (confine && route.isForCompanyOnly) throw forOneApp();
  const requestId = String(response.locals.requestId);
  const handle = (): Promise<ApiResponse> =>
    route.handle({
      caller,
      params,
      header,
      query: head.query as never,
      body: body as Body<never>,
      requestId,
      baseUrl: () => baseUrlOf(request),
      reserve: (bytes) => {
        memory.reserveOrRefuse(response, bytes);
      },
      takeTurn,
    });
  const clientAddress = request.ip ?? null;
  const asked = { caller, requestId, clientAddress, params, fields: body.value };
  return recordRequest(route, asked, handle);
}

/** `checkHead` has checked the host. Of what a proxy writes as protocol, only https is believed. */
function baseUrlOf(request: Request): string {
  return `${request.secure ? 'https' : 'http'}://${request.get('host') ?? ''}`;
}

function turnsFor(
  { companyId }: Caller,
  response: Response,
  { turns, rests }: Pick<CallDeps, 'turns' | 'rests'>,
): TakeTurn {
  return async (laterMs = 0) => {
    await turns.take(companyId);
    if (laterMs > 0) rests.charge(companyId, laterMs);
    // The request was refused while it waited. The client sends it again, so what is done now would be done twice.
    if (response.writableEnded || response.destroyed) throw unavailable('deadline_over');
  };
}

/** Null for a key of the whole company. */
function confinementOf(
  { companyId, appId }: Caller,
  confineToApp: ConfineToApp,
  takeTurn: TakeTurn,
): ((ids: NamedIds) => Promise<void>) | null {
  return appId === null ? null : (ids) => confineToApp({ companyId, appId }, ids, takeTurn);
}

/** Returns what follows the first question mark: a second one belongs to a value. */
function queryOf(url: string): string {
  const mark = url.indexOf('?');
  return mark === -1 ? '' : url.slice(mark + 1);
}

const EMPTY_OBJECT = Buffer.from('{}');

function bytesOf(route: Route, request: Request): Buffer {
  if (!route.body || (route.isBodyOptional && !hasBody(request))) return EMPTY_OBJECT;
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}

/** Returns the length of what it sends. */
function sendResponse(
  response: Response,
  { response: declared }: Route,
  sent: ApiResponse,
): Promise<number> {
  const { status, message } = declared;
  const { data, nextCursor, headers = {} } = sent;
  response.status(status).set(headers);
  return sendJson(response, {
    success: true,
    message,
    ...(data !== undefined && { data }),
    ...(nextCursor !== undefined && { nextCursor }),
  });
}
