import type { PortalGrant, Scope } from '@posthorn/domain/access.ts';
import type { APP_FIELDS } from '@posthorn/domain/app-fields.ts';
import type {
  AuditAction,
  AuditChange,
  AuditOutcome,
  AuditTargetKind,
} from '@posthorn/domain/audit.ts';
import type {
  Attempt,
  CancelReason,
  DeliveryStatus,
  ExhaustReason,
  Outcome,
} from '@posthorn/domain/delivery/delivery.ts';
import type { DeliveryFilter } from '@posthorn/domain/delivery/delivery-filter.ts';
import type { Sequence } from '@posthorn/domain/delivery/sequence.ts';
import type { CancelStepName } from '@posthorn/domain/delivery/filter-cancellation.ts';
import type { Hold, Waiting } from '@posthorn/domain/waiting.ts';
import type { Idempotency, InOrder, NoTargetReason, NotStored } from '@posthorn/domain/message.ts';
import type { KeptFields } from '@posthorn/domain/message-fields.ts';
import type { EVENT_TYPE_FIELDS } from '@posthorn/domain/event-type-fields.ts';
import type { StoredFields } from '@posthorn/domain/object-fields.ts';
import type { GroupRole, Role } from '@posthorn/domain/people.ts';
import type { PROJECT_FIELDS } from '@posthorn/domain/project-fields.ts';
import type { PageProgress, ResendFilter, ResendMark } from '@posthorn/domain/resend.ts';
import type { AttemptCounts } from '@posthorn/domain/stats.ts';
import type { OpenValues, SealedTexts } from '@posthorn/domain/webhook-fields.ts';

/** A Lifetime, whose docstring explains the fields. MongoDB removes a document at its `removeAt`. */
export interface LifetimeDates {
  expiresAt?: Date;
  removeAt?: Date;
}

/** The documents as they are stored. `_id` is the id that the API shows, with its prefix. */

/** A document that belongs to a company. */
interface OwnedDocument {
  _id: string;
  companyId: string;
}

export interface CompanyDocument {
  _id: string;
  name: string;
  createdAt: Date;
  /** Since when it is suspended, by the database's clock; absent while it is not. */
  suspendedAt?: Date;
  /** Since when it is being removed. Such a company is suspended too. */
  removalAt?: Date;
}

export interface ApiKeyDocument extends OwnedDocument {
  name: string;
  /** The first characters of the key, so that a person can distinguish keys. */
  prefix: string;
  /** SHA-256 of the key, in hex. The key itself is not stored. */
  hash: string;
  createdAt: Date;
  /** The scopes of the key. Absent for all. */
  scopes?: Scope[];
  /** The only app that the key may be used for; absent for the whole company. */
  appId?: string;
  /** Absent for ever. */
  expiresAt?: Date;
  /** The last use, exact to the minute; absent before the first. */
  lastUsedAt?: Date;
  /**
   * When it is removed. Only of a key that nobody ever knew: of a session that a sign-in link or a person's sign-in began,
   * and of a portal link that such a session made.
   */
  removeAt?: Date;
  /** The person who made it; absent for one that an API key, an operator or a link made. */
  createdBy?: string;
  /** The person whose session the key is of. Only such a key has this field and those below. */
  personId?: string;
  /** SHA-256 of issuer and `sid`, in hex; absent when the issuer names no session. */
  sidHash?: string;
  /** The ID token, sealed; absent for one of more than 4 KiB. */
  idToken?: string;
  signIn?: SignInDocument;
}

/** The sign-in that began a session of a person. */
export interface SignInDocument {
  role: Role;
  /** The groups that the issuer named; null when their list was not complete. */
  groups: string[] | null;
  clientAddress: string | null;
  userAgent: string | null;
}

/** A person in one company. */
export interface PersonDocument extends OwnedDocument {
  /** Issuer and subject are the person; name and e-mail address are only shown. */
  issuer: string;
  subject: string;
  name: string | null;
  email: string | null;
  /** The role by the groups of the last sign-in; absent without one. */
  groupRole?: Role;
  /** The role of the last invitation, or the one that replaced it; absent without one. */
  invitedRole?: Role;
  /** Absent unless the person is disabled. */
  disabledAt?: Date;
  createdAt: Date;
  lastSignedInAt: Date;
}

/** The settings of a company for its people. */
export interface PeopleSettingsDocument extends OwnedDocument {
  groups: GroupRole[];
  updatedAt: Date;
}

/** The part of an invitation that its link grants. */
export interface InvitationGrant {
  id: string;
  role: Role;
  name: string | null;
  email: string | null;
  /** The API key or the person that made it. */
  by: string;
}

/** The uid is unique among those of the company that have one. */
export interface ProjectDocument extends OwnedDocument, StoredFields<typeof PROJECT_FIELDS> {
  createdAt: Date;
  updatedAt: Date;
}

/** An event type of the catalogue of a project. `_id` is `projectId/name`. */
export interface EventTypeDocument extends OwnedDocument, StoredFields<typeof EVENT_TYPE_FIELDS> {
  projectId: string;
  schemaVersion: number;
  /** Names the request that made it, so that its repeat finds it. */
  creationId: string;
  createdAt: Date;
  updatedAt: Date;
}

/** An earlier schema of an event type. `_id` is `projectId/name/version`. */
export interface EventTypeVersionDocument extends OwnedDocument {
  projectId: string;
  name: string;
  version: number;
  schema: string | null;
}

/** The uid as above. */
export interface AppDocument extends OwnedDocument, StoredFields<typeof APP_FIELDS> {
  createdAt: Date;
  updatedAt: Date;
  held?: Hold | undefined;
}

/** The fields of libs/domain/src/webhook-fields.ts: sealed ones apart, the others under their names. */
export interface WebhookDocument extends OwnedDocument, OpenValues {
  /** Each value is sealed by itself. */
  sealed: SealedTexts;
  /** The key that sealed all values, for the rotation of keys. */
  keyId: string;
  createdAt: Date;
  updatedAt: Date;
  /** When it was last seen to have an old backlog that waits for its endpoint; absent if never. */
  deferredAt?: Date;
  /** Some of the deliveries before `cancelBeforeMs` may not be stored as cancelled yet; otherwise absent. */
  isCancelling?: true;
  /** The last report to the operator about its failures. A client's change ends it. */
  failing?: { since: Date; disableAt: Date | null };
}

/** A SigningKey. Only its id, number and dates can be read without an encryption key. */
export interface SigningKeyDocument extends OwnedDocument {
  number: number;
  sealed: string;
  /** The encryption key that sealed it, for the rotation of those. */
  keyId: string;
  createdAt: Date;
  /** When it has signed for the last time and is removed; absent in the newest. */
  expiresAt?: Date;
}

export interface MessageDocument extends NotStored, LifetimeDates, KeptFields {
  _id: string;
  companyId: string;
  appId: string | null;
  payload: string;
  targets: string[];
  publisherId: string;
  requestId: string;
  createdAt: Date;
  /** The following fields are absent in most messages. */
  eventType?: string;
  noTargetReason?: NoTargetReason;
  addedTargets?: string[];
  disabledTargets?: string[];
  idempotency?: Idempotency;
  isOrdered?: true;
  isTest?: true;
  traceparent?: string;
  deliverAt?: Date;
  /** The payload is '' then. */
  isPayloadErased?: true;
  /** The records in Kafka have the payload that a client had erased. */
  isPayloadInRecords?: true;
}

export type AttemptDocument = Omit<Attempt, 'startedAtMs'> & { startedAt: Date };

/** Inserted when the first attempt is settled. Until then a delivery is only a target of its message. */
export interface DeliveryDocument extends NotStored, LifetimeDates, InOrder {
  _id: string;
  messageId: string;
  webhookId: string;
  companyId: string;
  appId: string | null;
  status: DeliveryStatus;
  reason: CancelReason | ExhaustReason | null;
  /** Number of the last recorded attempt. Every update filters by it. */
  attemptCount: number;
  attempts: AttemptDocument[];
  nextAttemptAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  /** The mark of the newest resend; absent when there was none. */
  resend?: ResendMark;
  /** Both only while it waits (libs/domain/src/waiting.ts); then `updatedAt` is `waitingSince`. */
  waiting?: Waiting;
  waitingSince?: Date;
}

/**
 * That deliveries of a webhook, an app or a company may wait. `_id` is the id of that. Written before the hold begins,
 * and removed when nothing has waited for a minute after its end.
 */
export interface HoldNoteDocument extends OwnedDocument {
  kind: 'webhook' | 'app' | 'company';
  /** When the hold was last begun, changed or ended. */
  touchedAt: Date;
  /** True for a hold of a webhook or an app that does not end by itself. */
  isOpenEnded?: true;
  /** When a retry service looks at it next. */
  dueAt: Date;
  /** Names the claim of the process that works on it; absent while none does. */
  claim?: string;
  /** Most attempts to one webhook that are released in a second; absent for no limit. */
  ratePerSecond?: number;
}

/** A Sequence, whose docstring explains the fields. */
export interface SequenceDocument
  extends
    OwnedDocument,
    Pick<
      Sequence,
      'webhookId' | 'orderingKey' | 'head' | 'fromId' | 'changes' | 'isBlocked' | 'lookAfterMs'
    > {
  dueAt: Date;
  since: Date;
  updatedAt: Date;
}

/** How far a gateway process has published the messages that it stored. */
export interface PublisherDocument {
  _id: string;
  heartbeatAt: Date;
  /** Kafka has acknowledged every message of this publisher up to this id. */
  watermark: string;
  /** Since when the oldest unpublished message has waited; null when there is none. */
  behindSince: Date | null;
  /** Since when the sweep publishes what its gateway did not; final. Missing while it is the gateway's. */
  takenOverAt?: Date;
  /** Up to which message the sweep has published for this publisher. */
  sweptTo?: string;
}

/** How far the sweep has checked the messages of a share, such as `messages/7`. */
export interface MessageCheckDocument {
  _id: string;
  /** No message of the share up to this id is left; absent, or '', before the first one. */
  checkedTo?: string;
  /** No message before this was left when the last check was complete; absent before the first one. */
  completeTo?: Date;
}

/** A message whose payload may have to be erased, because a delivery of it succeeded. `_id` is its id. */
export interface ErasureDocument {
  _id: string;
  /** Absent in notes of earlier versions. */
  companyId?: string;
  /** When its deliveries are looked up, by the database's clock; absent until another one succeeds. */
  dueAt?: Date;
  /** So many of its targets, from the first one on, are known to be delivered. */
  checked: number;
  createdAt: Date;
}

/**
 * A message whose payload a client has erased. Dispatchers send nothing of it while the document is there. `_id` is the
 * message's id.
 */
export interface RequestedErasureDocument {
  _id: string;
  /** When it is erased once more, by the database's clock. */
  dueAt: Date;
}

/** How far create-indexes has come; one document. */
export interface MigrationDocument {
  _id: string;
  version: string;
  /** `collection.name` of the indexes that are not known to be ready. */
  pending: string[];
  updatedAt: Date;
}

/** Where messages and deliveries are; one document. */
export interface LayoutDocument {
  _id: string;
  /** The beginning of the first day: no message or delivery is older. */
  beginAt: Date;
  /** How long they are kept. */
  retentionDays: number;
  /** Whether new days are spread over the shards of a cluster. */
  isSharded?: boolean;
}

/** The claim of an idempotency key for a message; `_id` is `companyId/key`. One collection for each day has them. */
export interface IdempotencyKeyDocument extends OwnedDocument {
  /** The message may not be stored. */
  messageId: string;
  /** By the database's clock. */
  createdAt: Date;
  /** The place of the record whose message claimed the key (docs/ingest.md); absent for a request of the API. */
  ingestedFrom?: string;
}

/** The claim of an idempotency key for a request that creates something. CreationClaim explains the fields. */
export interface CreationKeyDocument extends OwnedDocument {
  holder: string;
  requestHash: string;
  idPart: string;
  /** The seed until it is done, then the response. */
  sealed: string;
  status: 'running' | 'interrupted' | 'done';
  /** Both by the database's clock. */
  heldAt: Date;
  createdAt: Date;
}

export interface LeaseDocument {
  _id: string;
  holder: string;
  expiresAt: Date;
}

/** A Resend, whose docstring explains the fields. */
export interface ResendDocument extends OwnedDocument {
  webhookId: string | null;
  /** Absent unless it is of an app: the unique index of running ones covers it only then. */
  appId?: string;
  /** Absent unless it is a part, or a replay (REPLAY). */
  partOf?: string;
  /** Absent unless it is a replay of some event types. */
  eventTypes?: string[];
  /** Absent unless only deliveries whose last attempt had this outcome are resent. */
  outcome?: Outcome;
  /** Absent unless a filter selects what is resent. */
  filter?: ResendFilter;
  /**
   * The webhook, when its failures of a span of time are resent, or the company, when those of all its webhooks are: one such
   * resend runs at a time.
   */
  spanOf?: string;
  afterId: string;
  beforeId: string;
  page: string[];
  status: 'running' | 'done' | 'aborted';
  /** Absent until it is put back with an unfinished page. */
  progress?: PageProgress;
  /** Absent unless it is of an app and was put back. */
  scannedTo?: string;
  /** Absent in parts. */
  dueAt?: Date;
  /** As that of a hold. */
  claim?: string;
  /** Absent unless a client asked to abort it. */
  abortAskedAt?: Date;
  total: number;
  succeeded: number;
  failed: number;
  createdAt: Date;
  updatedAt: Date;
}

/** A FilterCancellation, whose docstring explains the fields. */
export interface FilterCancellationDocument extends OwnedDocument {
  filter: DeliveryFilter;
  beforeMs: number;
  status: 'running' | 'done';
  step: CancelStepName;
  before: string | null;
  page: string[];
  cancelled: number;
  /** Until then dispatchers make no attempt of what the filter selects. */
  stopsUntil: Date;
  /** Absent when it is done. */
  dueAt?: Date;
  /** As that of a hold. */
  claim?: string;
  createdAt: Date;
  updatedAt: Date;
}

/** A deletion in progress: the root is deleted first, then everything under it. */
export interface RemovalDocument extends OwnedDocument {
  kind: 'project' | 'app' | 'webhook';
  rootId: string;
  /** Absent until a process has worked on it. */
  dueAt?: Date;
  /** As that of a hold. */
  claim?: string;
}

/** An AuditEvent, whose docstring explains the fields. */
export interface AuditEventDocument extends OwnedDocument {
  action: AuditAction;
  /** Id of the API key, of the portal link or of the person, `admin` or `system`. */
  actor: string;
  /** The name of a person then; absent for every other actor. */
  actorName?: string | null;
  targetKind: AuditTargetKind;
  targetId: string | null;
  clientAddress: string | null;
  requestId: string | null;
  outcome: AuditOutcome;
  code: string | null;
  changes: AuditChange[];
  count: number | null;
  createdAt: Date;
  completedAt: Date | null;
}

/** The attempts of one webhook, app or company that ended in one hour, and in each minute of it. */
export interface StatsDocument {
  /** `ownerId/2026-11-24T06`: the hours of an owner lie together and in order. */
  _id: string;
  companyId: string;
  kind: 'webhook' | 'app' | 'company';
  ownerId: string;
  /** The beginning of the hour. */
  at: Date;
  /** Counts that are 0 are absent, here and below. */
  total: Partial<AttemptCounts>;
  /** By minute of the hour, 0 to 59; those without an attempt are absent, and so is this when all are in `packed`. */
  minutes?: Record<string, Partial<AttemptCounts>>;
  /** Further minutes, by the step that added several at once: JSON of `[minute, counts]` for each (PackedCounts). */
  packed?: Record<string, string>;
  /** Failed attempts; only of a webhook, and absent without any: the index of failing hours has the others not. */
  failed?: number;
  /** The last step that was added (CountStepDocument). */
  step: number;
}

/** The usage of one company in one hour. `_id` is as in StatsDocument. */
export interface UsageDocument extends OwnedDocument {
  /** The beginning of the hour. */
  at: Date;
  /** Accepted messages, and the bytes of their payloads. */
  messages: number;
  messageBytes: number;
  /** Deliveries whose first attempt was made. */
  deliveries: number;
  attempts: number;
  succeeded: number;
  /** Bytes of the payloads that were sent. */
  sentBytes: number;
  /** As in StatsDocument. */
  step: number;
}

/** The counts of one process for the companies of one bucket in some seconds, until a step has added them up. */
export interface CountJournalDocument {
  /** `2026-11-24T06:28/process/number`: the minute of the earliest count in it comes first. */
  _id: string;
  /** Follows from the ids of the companies. */
  bucket: number;
  /** JSON of the counts: a fifth of the CPU time of a process that as many documents of MongoDB would take. */
  counts: string;
}

/** How far the journal is added up: one document. */
export interface CountStepDocument {
  _id: string;
  /** The number of the last step. */
  step: number;
  /** The ids of the journal's documents that the step adds up; absent when it has ended. */
  entries?: string[];
}

/** A Link, whose docstring explains the fields. */
export interface LinkDocument {
  /** SHA-256 of its token, in hex. The token itself is not stored. */
  _id: string;
  companyId: string;
  kind: 'signIn' | 'portal' | 'invitation';
  createdAt: Date;
  expiresAt: Date;
  /** Absent until it is used. */
  usedAt?: Date;
  /** Absent until it is revoked, or its visitor signs out. */
  revokedAt?: Date;
  /**
   * Of a link to the portal until it is revoked, and of an invitation until it is used or revoked: the index of the links
   * that may be used has no others.
   */
  isLive?: true;
  /** Only of a link to the portal. */
  portal?: PortalGrant;
  /** Only of an invitation. */
  invitation?: InvitationGrant;
}

/** The settings of a company for its portal. */
export interface PortalSettingsDocument {
  /** The id of the company. */
  _id: string;
  companyId: string;
  /** The origins of the pages that may frame the portal. */
  origins: string[];
  updatedAt: Date;
}
