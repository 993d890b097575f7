import { ImpossibleError } from '@posthorn/domain/required.ts';
import type { Request, Response } from 'express';
import {
  forOneApp,
  insufficientScope,
  invalidRequest,
  overloaded,
  type Problem,
  unavailable,
} from '../api-error.ts';
import { hasCredentials } from '../keys/authenticate.ts';
import type { Identify } from '../keys/identify.ts';
import { assertAllowed, type Caller, type NamedIds, type Needed } from '../keys/rights.ts';
import type { RateLimits } from '../limits/rate-limits.ts';
import type { RequestsUnderWay } from '../limits/requests-under-way.ts';
import type { NextSlice, Slices } from '../limits/slices.ts';
import type { Throttle } from '../limits/throttle.ts';
import { isMarked, type ResolveUids, uidIn } from '../projects/uids.ts';
import type { AuditedRequest, RecordRequest } from './audit-requests.ts';
import {
  assertJson,
  BODY_BOUNDS,
  createReceiveBody,
  readBody,
  readHead,
  readRawFields,
  type RequestHead,
} from './body.ts';
import type { CreateOnce } from './creations.ts';
import type { RequestDeadlines } from './request-deadlines.ts';
import { REQUEST_BYTES, type RequestMemory } from './request-memory.ts';
import {
  type ApiResponse,
  type Body,
  type CheckedRequest,
  NO_FIELDS,
  type Route,
  SECRETS_READ,
} from './route.ts';
import { beginPages, framed, type Pages, sendJson, sendPages } from './send-json.ts';

export interface IdentifyDeps {
  identify: Identify;
  /** Counts requests that wait for the look-up of their key. */
  unknownCallers: Pick<RequestMemory, 'countWhile'>;
  deadlines: Pick<RequestDeadlines, 'within'>;
}

export interface PipelineDeps extends IdentifyDeps {
  deadlines: Pick<RequestDeadlines, 'within' | 'signalOf'>;
  limits: Pick<RateLimits, 'limitCompany' | 'countMore'>;
  memory: Pick<RequestMemory, 'tryReserve' | 'reserve' | 'keepUntil' | 'reserveOrRefuse'>;
  slices: Pick<Slices, 'next'>;
  throttle: Pick<Throttle, 'note' | 'charge' | 'chargeBytes' | 'waitMs'>;
  underWay: RequestsUnderWay;
  resolveUids: ResolveUids;
  /** Throws ApiError 404 when something that the request names is not in the app. */
  confineToApp: (
    owner: { companyId: string; appId: string },
    ids: NamedIds,
    nextSlice: NextSlice,
  ) => Promise<void>;
  recordRequest: RecordRequest;
  createOnce: CreateOnce;
}

/** Handles a request, or rejects with what `sendError` turns into a response. */
export type Handler = (request: Request, response: Response) => Promise<void>;

/** A request of an identified caller, on its way through the steps. */
interface Call {
  route: Route;
  request: Request;
  response: Response;
  caller: Caller;
  nextSlice: NextSlice;
  deps: PipelineDeps;
}

/**
 * Returns the handler of a route: the path of a request.
 *
 *  1. A client without credentials gets what everyone may read.
 *  2. The caller is identified, and has the right to the route. No byte of the body is read before.
 *  3. The request counts for the limits of its company, which has memory for it.
 *  4. The body is received.
 *
 * The others take place within the time of a request and, unless the route has a queue, in one of the company's slots:
 *
 *  5. Path and query are read, and the path has ids in place of uids.
 *  6. What the path names is in the app of the key.
 *  7. The company has its turn, and its queue has room.
 *  8. The body is read, body and query have ids in place of uids, and what they name is in the app of the key.
 *  9. A repeat with an idempotency key gets the first response.
 * 10. The handler does the work, and the audit log records it.
 * 11. The response is sent.
 */
export function handlerOf(route: Route, deps: PipelineDeps): Handler {
  const { limits, memory, deadlines } = deps;
  const identify = createIdentifyAllowed(route, deps);
  const { maxBodyBytes: maxBytes = BODY_BOUNDS.maxBytes } = route;
  const bounds = { ...BODY_BOUNDS, maxBytes, ...route.ownBody };
  const receive = route.body && createReceiveBody(memory, bounds);
  return async (request, response) => {
    if (route.forEveryone && !hasCredentials(request.headers)) {
      await respondToEveryone(request, response, route, route.forEveryone);
      return;
    }
    await identify(request, response);
    limits.limitCompany(response);
    reserveMemory(response, deps);
    if (receive) {
      if (!route.isBodyOptional || hasBody(request)) assertJson(request);
      request.body = await receive(request, response);
    }
    const call = callOf(route, request, response, deps);
    const work = inSlot(call, async () => {
      const target = await readTarget(call);
      await confineTarget(call, target);
      const bytes = bytesOf(call);
      await awaitSlice(call, bytes);
      const read = await readFields(call, target, bytes);
      return begin(await handleOnce(call, read));
    });
    memory.keepUntil(response, work);
    await send(call, await deadlines.within(response, work));
  };
}

function callOf(route: Route, request: Request, response: Response, deps: PipelineDeps): Call {
  const caller = callerOf(response);
  return { route, request, response, caller, nextSlice: turnsFor(caller, response, deps), deps };
}

/** Throws ApiError 503 when the company's requests hold as much memory as they may. */
function reserveMemory(response: Response, { throttle, memory }: PipelineDeps): void {
  const { companyId } = callerOf(response);
  throttle.note(companyId);
  throttle.charge(companyId, REQUEST_MS);
  if (!memory.tryReserve(response, REQUEST_BYTES)) throw overloaded();
}

/** Responds to a request without credentials; the address of its client is limited before. */
async function respondToEveryone(
  request: Request,
  response: Response,
  route: Route,
  { cacheControl, respond: respondNow }: NonNullable<Route['forEveryone']>,
): Promise<void> {
  const { problems } = readHead(headOf(request), route);
  if (problems.length > 0) throw invalidRequest(problems);
  response.set('Cache-Control', cacheControl);
  await sendResponse(response, route, respondNow());
}

/** The CPU time of the shortest request, about. A message of 1 KB takes 0.25 ms (docs/performance.md). */
const REQUEST_MS = 0.2;

/** Finds out who makes the request, and leaves it in `locals.caller`. Throws ApiError 403 when the caller may not. */
export function createIdentifyAllowed(
  needed: Needed,
  { identify, unknownCallers, deadlines }: IdentifyDeps,
): Handler {
  return async (request, response) => {
    const identifying = unknownCallers.countWhile(response, REQUEST_BYTES, () => identify(request));
    const caller = await deadlines.within(response, identifying);
    assertAllowed(needed, caller);
    response.locals.caller = caller;
  };
}

const callerOf = (response: Response): Caller => response.locals.caller as Caller;

/** A request that waits in a queue of its own has its limit there. */
function inSlot<Result>(
  { route: { queue }, response, caller, deps: { underWay } }: Call,
  work: () => Promise<Result>,
): Promise<Result> {
  return queue ? work() : underWay.run(caller, () => isOver(response), work);
}

const isOver = (response: Response): boolean => response.writableEnded || response.destroyed;

interface Begun {
  sent: ApiResponse;
  /** All pages, when they are sent part by part. */
  rest: Pages | null;
}

/** Reads the list far enough to know whether it is a long one. An error until then gets an ordinary error response. */
async function begin(sent: ApiResponse): Promise<Begun> {
  const { pages, frame } = sent;
  if (!pages) return { sent, rest: null };
  const { first, rest } = await beginPages(pages);
  return { sent: rest ? sent : { data: frame ? framed(frame, first) : first }, rest };
}

/** Handles the request within the audit log, or finds the response to the earlier one with its idempotency key. */
function handleOnce(call: Call, read: ReadRequest): Promise<ApiResponse> {
  const { route, request, response, caller, nextSlice, deps } = call;
  const { params, query, body, problems, upsert } = read;
  const requestId = String(response.locals.requestId);
  const header = (name: string): string | undefined => request.get(name);
  const reserve = (bytes: number): void => {
    deps.memory.reserveOrRefuse(response, bytes);
  };
  const handled = { ...route, handle: handleOf(route, upsert) };
  const asked = {
    caller,
    params,
    header,
    query,
    body,
    problems,
    requestId,
    reserve,
    nextSlice,
    ...forSeveral(call),
    baseUrl: () => baseUrlOf(request),
  };
  const audited = {
    caller,
    requestId,
    params,
    fields: body.value,
    clientAddress: request.ip ?? null,
    creates: upsert?.isUnknown === true,
  };
  const key = route.creation && header('idempotency-key');
  return deps.createOnce(
    { route, caller, params, bytes: body.bytes, key, reserve },
    {
      create: (origin, isRepeat) =>
        deps.recordRequest(route, audited, (isRecorded) =>
          handleOrFind(handled, { ...asked, ...origin, isRecorded }, isRepeat),
        ),
      showAgain: (first) => recordShownAgain(route, audited, first, deps),
    },
  );
}

/** The functions of a handler whose request has several messages. */
function forSeveral(call: Call): Pick<CheckedRequest, 'countAs' | 'identify' | 'deadline'> {
  const { response, caller, deps } = call;
  const { limits, resolveUids, deadlines } = deps;
  return {
    countAs(messages) {
      response.locals.messages = { count: messages };
      // The request itself was counted before.
      limits.countMore(response, messages - 1);
    },
    async identify(named) {
      const ids = await resolveUids(named, caller);
      await confine(call, ids);
      return ids;
    },
    deadline: () => deadlines.signalOf(response),
  };
}

function handleOf({ handle, upsert }: Route, asked: AskedUpsert | null): Route['handle'] {
  return upsert && asked ? (request) => upsert.handle(request, asked.uid) : handle;
}

async function handleOrFind(
  { handle, creation }: Pick<Route, 'handle' | 'creation'>,
  request: CheckedRequest,
  isRepeat: boolean,
): Promise<ApiResponse> {
  const find = (): Promise<ApiResponse | null> | undefined => creation?.find?.(request);
  if (!isRepeat) return handle(request);
  const found = await find();
  if (found) return found;
  try {
    return await handle(request);
  } catch (error) {
    // MongoDB may have executed the insert of the earlier request since, which also counts for quotas.
    const late = await find();
    if (late) return late;
    throw error;
  }
}

/** Showing the secrets of a webhook once more is a read of them (docs/contract.md C17.6). */
async function recordShownAgain(
  { creation }: Route,
  audited: AuditedRequest,
  first: ApiResponse,
  { recordRequest }: PipelineDeps,
): Promise<ApiResponse> {
  if (!creation?.showsSecrets) return first;
  const { id } = first.data as { id: string };
  const request = { ...audited, params: { webhookId: id }, fields: {} };
  return recordRequest({ method: 'get', audit: SECRETS_READ }, request, () =>
    Promise.resolve(first),
  );
}

/** The subject of a request: its path and its query. */
interface Target {
  params: Readonly<Record<string, string>>;
  /** With uids. */
  query: Record<string, unknown>;
  problems: readonly Problem[];
  upsert: AskedUpsert | null;
}

async function readTarget({ route, request, caller, deps }: Call): Promise<Target> {
  const head = readHead(headOf(request), route);
  const named = request.params as Record<string, string>;
  const params = await deps.resolveUids(named, caller);
  const { upsert, problems } = upsertOf(route, { query: head.query, named, params });
  return { params, query: head.query, problems: [...head.problems, ...problems], upsert };
}

async function confineTarget(call: Call, { params, upsert }: Target): Promise<void> {
  if (upsert) assertMayUpsert(call.caller, call.route);
  // An object that does not exist yet is in no app. Its body is checked, as in any other creation.
  if (!upsert?.isUnknown) await confine(call, params);
}

/** Throws ApiError 404 when something that is named is not in the app of the key. */
async function confine(
  { caller: { companyId, appId }, nextSlice, deps }: Call,
  ids: NamedIds,
): Promise<void> {
  if (appId !== null) await deps.confineToApp({ companyId, appId }, ids, nextSlice);
}

/** Checking a body of this size takes a fifth of a millisecond, one of 256 KiB 3 ms. */
const LARGE_BODY_BYTES = 16_384;

/** Throws ApiError 503 when the queue of the route has no room. */
async function awaitSlice(call: Call, { length }: Buffer): Promise<void> {
  const { route, caller, nextSlice, deps } = call;
  const { companyId } = caller;
  // Short requests wait too when their company is throttled: many of them are work as well.
  if (!route.queue && deps.throttle.waitMs(companyId) > 0) await nextSlice();
  if (route.queue?.hasRoom(companyId, length) === false) throw overloaded();
  if (length < LARGE_BODY_BYTES) return;
  await nextSlice();
  deps.throttle.chargeBytes(companyId, length);
}

interface ReadRequest extends Target {
  body: Body<Record<string, unknown>>;
}

/** An object takes so many times the bytes of its JSON, where its values are short. */
const OBJECT_BYTES = 10;

/** One response reports the problems of head and body. Those of a body that the handler reads are left to it. */
async function readFields(call: Call, target: Target, bytes: Buffer): Promise<ReadRequest> {
  const { route, response, caller, deps } = call;
  const { params, upsert } = target;
  const schema = (upsert ? route.upsert?.body : route.body) ?? NO_FIELDS;
  const stored =
    route.problemsOf && !upsert
      ? await route.problemsOf({ caller, params, fields: readRawFields(bytes, schema) })
      : [];
  const problems = [...target.problems, ...stored];
  if (route.maxBodyBytes) deps.memory.reserveOrRefuse(response, bytes.length * OBJECT_BYTES);
  const body = route.ownBody ? unreadBody(bytes) : readBody(bytes, schema, problems);
  const { companyId } = caller;
  const query = await deps.resolveUids(target.query, { companyId, idsOf: route.idsOf });
  body.value = await deps.resolveUids(body.value, { companyId });
  await confine(call, query);
  await confine(call, body.value);
  if (caller.appId !== null && route.isForCompanyOnly) throw forOneApp();
  return { params, query, body, problems, upsert };
}

function unreadBody(bytes: Buffer): Body<Record<string, unknown>> {
  const notRead = (): never => {
    throw new ImpossibleError('the handler of this route reads the body');
  };
  return { value: {}, bytes, textOf: notRead, as: notRead };
}

/** Before it is known whether something has the uid. */
function assertMayUpsert({ appId, portal }: Caller, { upsert }: Route): void {
  if (portal) throw insufficientScope('A visitor of the portal cannot create by a uid.');
  if (appId !== null && upsert?.isForCompanyOnly) throw forOneApp();
}

interface AskedUpsert {
  /** Or the name of what has no uid. */
  uid: string;
  /** Nothing that the cache knows of has the uid. */
  isUnknown: boolean;
}

interface NamedByUid {
  query: Readonly<Record<string, unknown>>;
  /** The parameters of the path as they were written, and with ids in place of uids. */
  named: Readonly<Record<string, string>>;
  params: Readonly<Record<string, string>>;
}

/** Returns null for a request that is no upsert. The path of an upsert by a uid has one parameter. */
function upsertOf(
  { upsert }: Route,
  { query, named, params }: NamedByUid,
): { upsert: AskedUpsert | null; problems: Problem[] } {
  if (!upsert || query.upsert !== 'true') return { upsert: null, problems: [] };
  if (upsert.isByName) {
    const name = Object.values(named).at(-1) ?? '';
    return { upsert: { uid: name, isUnknown: false }, problems: [] };
  }
  const uid = uidIn(Object.values(named)[0] ?? '');
  if (uid !== null) {
    const isUnknown = Object.values(params).some(isMarked);
    return { upsert: { uid, isUnknown }, problems: [] };
  }
  const message = 'needs an address with a uid, such as uid:customer-17';
  return { upsert: null, problems: [{ path: 'upsert', message }] };
}

/** RFC 9112, 6: a request has a body when one of these two headers says so. */
function hasBody(request: Request): boolean {
  const length = request.get('content-length');
  return request.get('transfer-encoding') !== undefined || (length ?? '0') !== '0';
}

const EMPTY_OBJECT = Buffer.from('{}');

function bytesOf({ route, request }: Call): Buffer {
  if (!route.body || (route.isBodyOptional && !hasBody(request))) return EMPTY_OBJECT;
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}

/** `checkHead` has checked the host. `https` is the only protocol that is believed when a proxy names it. */
function baseUrlOf(request: Request): string {
  return `${request.secure ? 'https' : 'http'}://${request.get('host') ?? ''}`;
}

function turnsFor(
  { companyId }: Caller,
  response: Response,
  { slices, throttle }: PipelineDeps,
): NextSlice {
  return async (laterMs = 0) => {
    await slices.next(companyId);
    if (laterMs > 0) throttle.charge(companyId, laterMs);
    // The request was refused while it waited. The client sends it again, so work done now would be done twice.
    if (isOver(response)) throw unavailable('deadline_over');
  };
}

const headOf = (request: Request): RequestHead => ({
  queryText: queryOf(request.url),
  header: (name) => request.get(name),
});

/** Returns the part after the first question mark: a second one belongs to a value. */
function queryOf(url: string): string {
  const mark = url.indexOf('?');
  return mark === -1 ? '' : url.slice(mark + 1);
}

async function send(call: Call, { sent, rest }: Begun): Promise<void> {
  const { route, response, caller, deps } = call;
  const charge = (bytes: number): void => {
    deps.throttle.chargeBytes(caller.companyId, bytes);
  };
  if (rest) {
    const { frame } = sent;
    await sendPages(response, { ...route.response, frame }, rest, charge);
    return;
  }
  charge(await sendResponse(response, route, sent));
  // The bytes that the client has not received yet; usually none.
  deps.memory.reserve(response, response.writableLength);
}

/** Returns the length of the response. */
function sendResponse(
  response: Response,
  { response: ordinary, upsert }: Route,
  { data, nextCursor, headers = {}, isCreated, messages }: ApiResponse,
): Promise<number> {
  if (messages) response.locals.messages = messages;
  const { status, message } = isCreated && upsert ? upsert.response : ordinary;
  response.status(status).set(headers);
  return sendJson(response, {
    success: true,
    message,
    ...(data !== undefined && { data }),
    ...(nextCursor !== undefined && { nextCursor }),
  });
}
