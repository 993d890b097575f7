import type { IdPrefix } from '@posthorn/domain/ids.ts';
import type {
  ClaimedCreation,
  CreationKey,
  CreationKeyStore,
} from '@posthorn/platform/mongo/companies/creation-keys.ts';
import { CLAIM_LASTS_MS, KEPT_MS } from '@posthorn/platform/mongo/messages/idempotency-keys.ts';
import type { Vault } from '@posthorn/platform/security/vault.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { hash, randomBytes, randomUUID } from 'node:crypto';
import { ApiError, keyRunning } from '../api-error.ts';
import type { Caller } from '../keys/rights.ts';
import { refusalOf } from './audit-requests.ts';
import type { ApiResponse, Origin, Route } from './route.ts';

/** A request of any route; only those of routes that create something have a key. */
export interface CreationRequest {
  route: Pick<Route, 'method' | 'path' | 'creation'>;
  caller: Pick<Caller, 'companyId' | 'appId' | 'portal'>;
  params: Readonly<Record<string, string>>;
  /** The whole body as the client sent it. */
  bytes: Buffer;
  /** The `Idempotency-Key`; undefined without one. */
  key: string | undefined;
  /** Counts bytes that are about to be read for this request. Throws ApiError 503 when there is no room. */
  reserve: (bytes: number) => void;
}

interface CreationSteps {
  /** `isRepeat`: an earlier request with the same origin may have created something. */
  create: (origin: Origin, isRepeat: boolean) => Promise<ApiResponse>;
  /** Called with the first response before it is sent again. */
  showAgain: (response: ApiResponse) => Promise<ApiResponse>;
}

/**
 * Creates something once for each idempotency key (docs/contract.md C8.6). Throws ApiError 409 while the first request
 * with the key runs, 422 when it was another one, and what the steps throw.
 */
export type CreateOnce = (request: CreationRequest, steps: CreationSteps) => Promise<ApiResponse>;

interface CreateOnceDeps {
  keys: CreationKeyStore;
  vault: Pick<Vault, 'seal' | 'open'>;
  newId: (prefix: IdPrefix) => string;
  logger: Pick<Logger, 'warn'>;
}

/** The bytes of a webhook's secret. */
const SEED_BYTES = 32;

/**
 * A key is claimed before anything is created, together with the ids and the seed of what the request will create
 * (docs/decisions/0012-keys-are-claimed-before-their-message.md). When its process ends before it has stored the response,
 * a repeat takes the claim over: it finds what was created by its id, or creates it with the same id, which MongoDB
 * stores only once. A request that is refused has changed nothing, and frees its key.
 */
export function createCreateOnce(deps: CreateOnceDeps): CreateOnce {
  const { newId } = deps;
  const anew: Origin = { newId, seed: () => Promise.resolve(randomBytes(SEED_BYTES)) };
  return (request, steps) => {
    const { key } = request;
    if (key === undefined) return steps.create(anew, false);
    return createKeyed(deps, { ...request, place: placeOf(request, key) }, steps);
  };
}

interface KeyedRequest extends CreationRequest {
  place: CreationKey;
}

/** A caller that sees a part of the company has keys of its own: a repeat shows what the first request created. */
function placeOf({ route, caller }: CreationRequest, key: string): CreationKey {
  const { companyId, appId, portal } = caller;
  const within = portal?.linkId ?? appId ?? '';
  return { companyId, within, route: `${route.method} ${route.path}`, key };
}

function requestHashOf({ params, bytes }: CreationRequest): string {
  const ids = JSON.stringify(Object.values(params));
  return hash('sha256', Buffer.concat([Buffer.from(ids), bytes]), 'hex');
}

async function createKeyed(
  deps: CreateOnceDeps,
  request: KeyedRequest,
  steps: CreationSteps,
): Promise<ApiResponse> {
  const { keys } = deps;
  const { place, route } = request;
  const own = newClaim(deps, request);
  const found = await keys.claim(place, own);
  if (!found) return createAndKeep(deps, { place, route, ...own }, steps, false);
  if (found === 'undecided') throw keyRunning();
  switch (useOf(found, () => isSameRequest(deps, request, found))) {
    case 'repeat':
      return steps.showAgain(await readAgain(deps, request, found));
    case 'reused':
      throw new ApiError('idempotency_key_reused');
    case 'running':
      throw keyRunning();
    case 'abandoned': {
      const { holder } = own;
      if (!(await keys.takeOver(place, found.holder, holder))) throw keyRunning();
      return createAndKeep(deps, { place, route, holder, idPart: found.idPart }, steps, true);
    }
    case 'expired':
      await keys.free(place, found.holder);
      return createKeyed(deps, request, steps);
  }
}

function newClaim(deps: CreateOnceDeps, request: KeyedRequest) {
  const id = deps.newId('att');
  const idPart = id.slice(id.indexOf('_') + 1);
  const { place } = request;
  const seed = randomBytes(SEED_BYTES).toString('base64');
  const seal = (text: string, field: Sealed): string =>
    deps.vault.seal(text, bindingOf({ place, idPart }, field));
  return {
    holder: randomUUID(),
    // Sealed, because a body may have a password that is weak enough to be guessed by its hash.
    requestHash: seal(requestHashOf(request), 'request'),
    idPart,
    sealed: seal(seed, 'seed'),
  };
}

function isSameRequest(
  { vault }: CreateOnceDeps,
  request: KeyedRequest,
  { requestHash, idPart }: ClaimedCreation,
): boolean {
  const binding = bindingOf({ place: request.place, idPart }, 'request');
  return vault.open(requestHash, binding) === requestHashOf(request);
}

/** The meaning of a request whose key another one has claimed. */
type KeyUse =
  /** The same request once more. */
  | 'repeat'
  /** Another request. */
  | 'reused'
  | 'running'
  /** Nobody works on the first request any more. It has no response, and may have created something. */
  | 'abandoned'
  /** The key is older than keys are kept. */
  | 'expired';

/** `isSame` is not called for an expired key, whose encryption key may be gone (docs/secrets.md). */
export function useOf(found: ClaimedCreation, isSame: () => boolean): KeyUse {
  if (found.ageMs >= KEPT_MS) return 'expired';
  if (!isSame()) return 'reused';
  if (found.status === 'done') return 'repeat';
  return found.status === 'running' && found.heldMs < CLAIM_LASTS_MS ? 'running' : 'abandoned';
}

/** A claim that this request has. */
interface OwnClaim {
  place: CreationKey;
  route: CreationRequest['route'];
  holder: string;
  idPart: string;
}

/** Creates the thing, and stores the response for repeats. */
async function createAndKeep(
  deps: CreateOnceDeps,
  own: OwnClaim,
  { create }: CreationSteps,
  isRepeat: boolean,
): Promise<ApiResponse> {
  const { keys, vault } = deps;
  const { place, route, holder } = own;
  const origin: Origin = {
    newId: (prefix) => `${prefix}_${own.idPart}`,
    seed: async () => Buffer.from(await readSealed(deps, own, 'seed'), 'base64'),
  };
  const response = await create(origin, isRepeat).catch(async (error: unknown) => {
    // An earlier request may still create something: a key that is free would let another one do it again.
    const end = isRefusal(error) && !isRepeat ? keys.free : keys.interrupt;
    await noteEnd(deps, own, end(place, holder));
    throw error;
  });
  const shownAgain = JSON.stringify(withoutShownOnce(response, route));
  const sealed = vault.seal(shownAgain, bindingOf(own, 'response'));
  await noteEnd(deps, own, keys.complete(place, holder, sealed));
  return response;
}

/** After any other error something may have been created. */
function isRefusal(error: unknown): boolean {
  const code = refusalOf(error);
  // The message of a test may still be stored.
  return code !== null && code !== 'idempotency_key_running';
}

/** The client gets the result of its request in any case; a repeat finds out by itself what was created. */
async function noteEnd(
  { logger }: CreateOnceDeps,
  { place: { companyId, route } }: OwnClaim,
  ending: Promise<void>,
): Promise<void> {
  try {
    await ending;
  } catch (err) {
    logger.warn({ err, companyId, route }, 'cannot store how a request with a key ended');
  }
}

function withoutShownOnce({ data }: ApiResponse, { creation }: OwnClaim['route']): object {
  const hidden = (creation?.shownOnce ?? []).map((name) => [name, null]);
  return { ...(data as object), ...(Object.fromEntries(hidden) as object) };
}

/** The document, its opened response as text and as objects, and the response as it is sent. */
const COPIES = 4;

/** A response may have a megabyte, so it is counted before it is read. */
async function readAgain(
  deps: CreateOnceDeps,
  { place, reserve }: KeyedRequest,
  { holder, idPart, storedBytes }: ClaimedCreation,
): Promise<ApiResponse> {
  reserve(storedBytes * COPIES);
  const data: unknown = JSON.parse(await readSealed(deps, { place, holder, idPart }, 'response'));
  return { data, headers: { 'Idempotency-Replayed': 'true' } };
}

async function readSealed(
  { keys, vault }: CreateOnceDeps,
  claim: Omit<OwnClaim, 'route'>,
  field: Sealed,
): Promise<string> {
  const sealed = await keys.readSealed(claim.place, claim.holder);
  // Another request has taken the claim over since.
  if (sealed === null) throw keyRunning();
  return vault.open(sealed, bindingOf(claim, field));
}

/** The sealed part of a claim. */
type Sealed = 'request' | 'seed' | 'response';

function bindingOf(
  { place: { companyId }, idPart }: Pick<OwnClaim, 'place' | 'idPart'>,
  field: Sealed,
) {
  return { companyId, ownerId: idPart, field };
}
