import {
  type AuditActor,
  type AuditedFields,
  type AuditTarget,
  type AuditTargetKind,
  changesBetween,
} from '@posthorn/domain/audit.ts';
import type {
  AuditedAction,
  AuditedResult,
  AuditLog,
} from '@posthorn/platform/mongo/companies/audit-log.ts';
import { eventTypeIdOf } from '@posthorn/domain/event-type-fields.ts';
import { seesSecrets } from '../keys/rights.ts';
import { ApiError } from '../api-error.ts';
import type { ApiResponse, AuditSpec, Route, Upsert } from './route.ts';
import type { Caller } from '../keys/rights.ts';
import { beginPages } from './send-json.ts';

/** A request whose fields were validated. */
export interface AuditedRequest {
  caller: Caller;
  requestId: string;
  clientAddress: string | null;
  params: Readonly<Record<string, string>>;
  fields: AuditedFields;
  /** An upsert of a uid that nothing had. */
  creates?: boolean;
}

/**
 * Calls the handler of a route, and records in the audit log what the route declares. Throws what the handler
 * throws, and what the store throws: then nothing was changed, and nothing is shown.
 */
export type RecordRequest = (
  route: Pick<Route, 'method' | 'audit' | 'upsert' | 'creation'>,
  request: AuditedRequest,
  handle: (isRecorded: Promise<unknown>) => Promise<ApiResponse>,
) => Promise<ApiResponse>;

const RECORDED = Promise.resolve();

export function createRecordRequest(log: AuditLog): RecordRequest {
  return async ({ method, audit, upsert, creation }, request, handle) => {
    if (!audit || audit.changesNothing?.(request.fields)) return handle(RECORDED);
    const spec = upsert && request.creates ? { ...audit, action: upsert.action } : audit;
    const action = actionOf(spec, request);
    if (method !== 'get') {
      const asked = { given: request.fields, action: audit.action, upsert };
      const result = (response: ApiResponse): AuditedResult => resultOf(response, asked);
      return creation?.readsFirst
        ? log.recordAfterReads(action, handle, result)
        : log.recordChange(action, () => handle(RECORDED), result);
    }
    const { secretsFor } = audit;
    const isRecorded = secretsFor === undefined || seesSecrets(request.caller, secretsFor);
    if (!isRecorded) return handle(RECORDED);
    const read = await handle(RECORDED);
    return read.hidesSecrets ? read : recordRead(log, action, read);
  };
}

/** Returns the code of a refusal. After any other failure the change may have been made. */
export function refusalOf(error: unknown): string | null {
  return error instanceof ApiError && error.status < 500 ? error.code : null;
}

async function recordRead(
  log: AuditLog,
  action: AuditedAction,
  read: ApiResponse,
): Promise<ApiResponse> {
  const { first, rest } = read.pages ? await beginPages(read.pages) : { first: null, rest: null };
  if (rest) return { pages: log.recordParts(action, rest) };
  await log.recordRead(action, first?.length ?? 1);
  return first ? { data: first } : read;
}

function actionOf({ action, target }: AuditSpec, request: AuditedRequest): AuditedAction {
  const { caller, requestId, clientAddress, fields, creates } = request;
  const params = creates ? {} : request.params;
  return {
    companyId: caller.companyId,
    action,
    actor: actorOf(caller),
    target: targetOf(target, caller, { ...request, params }),
    clientAddress,
    requestId,
    changes: changesBetween({}, fields, fields),
  };
}

function actorOf({ keyId, portal, person }: Caller): AuditActor {
  if (person) return { kind: 'person', personId: person.id, name: person.name };
  return portal ? { kind: 'portalLink', linkId: portal.linkId } : { kind: 'apiKey', keyId };
}

/** The longest id that a body may name; a path may hold any text. */
const MAX_ID_CHARS = 128;
/** That of an event type is the id of its project and a name. */
const MAX_EVENT_TYPE_CHARS = 160;

const ID_PARAMS: Partial<Record<AuditTargetKind, string>> = {
  apiKey: 'keyId',
  project: 'projectId',
  app: 'appId',
  portalLink: 'linkId',
  person: 'personId',
  invitation: 'invitationId',
  webhook: 'webhookId',
  message: 'messageId',
  delivery: 'deliveryId',
  resend: 'resendId',
  cancellation: 'cancellationId',
};

function targetOf(
  kind: AuditTargetKind,
  { companyId }: Caller,
  { params, fields }: Pick<AuditedRequest, 'params' | 'fields'>,
): AuditTarget {
  if (kind === 'company') return { kind, id: companyId };
  if (kind === 'eventType') {
    const name = params.eventTypeName ?? String(fields.name);
    const id = eventTypeIdOf(params.projectId ?? '', name);
    return { kind, id: id.slice(0, MAX_EVENT_TYPE_CHARS) };
  }
  const id = params[ID_PARAMS[kind] ?? ''];
  return { kind, id: id === undefined ? null : id.slice(0, MAX_ID_CHARS) };
}

interface AskedChange {
  given: AuditedFields;
  action: AuditSpec['action'];
  upsert: Upsert | undefined;
}

/** The created object has its id only now: that of the response. Only now it is known whether an upsert created one. */
function resultOf(
  { data, changed, isCreated }: ApiResponse,
  { given, action, upsert }: AskedChange,
): AuditedResult {
  const id = idOf(data);
  return {
    ...(upsert && isCreated !== undefined && { action: isCreated ? upsert.action : action, id }),
    createdId: id,
    changes: changed && changesBetween(changed.before, changed.after, given),
  };
}

function idOf(data: unknown): string | null {
  const { id = null } = (data ?? {}) as { id?: string };
  return id;
}
