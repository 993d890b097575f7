import type { Idempotency } from '@posthorn/domain/message.ts';
import type { Attempt, CancelReason, DeliveryStatus } from '@posthorn/domain/delivery.ts';
import type { SealedFields } from './sealed-fields.ts';

/** The shapes in the database. `_id` is the id that the API shows, prefix included. */

export interface CompanyDocument {
  _id: string;
  name: string;
  createdAt: Date;
}

export interface ApiKeyDocument {
  _id: string;
  companyId: string;
  name: string;
  /** The key's first characters, so that a person can tell keys apart. */
  prefix: string;
  /** SHA-256 of the key, hex. The key itself is kept nowhere. */
  hash: string;
  createdAt: Date;
}

export type Environment = 'development' | 'production';

export interface ProjectDocument {
  _id: string;
  companyId: string;
  name: string;
  description: string | null;
  environment: Environment;
  createdAt: Date;
  updatedAt: Date;
}

export interface AppDocument {
  _id: string;
  companyId: string;
  projectId: string;
  name: string;
  description: string;
  environment: Environment;
  createdAt: Date;
  updatedAt: Date;
}

export interface WebhookDocument {
  _id: string;
  companyId: string;
  projectId: string;
  /** Null for a global webhook, which has an environment id instead. */
  appId: string | null;
  environmentId: string | null;
  name: string;
  url: string;
  sealed: SealedFields;
  /** The key that sealed all of them, for the rotation. */
  keyId: string;
  eventTypes: string[];
  disabled: boolean;
  rateLimitPerSecond: number | null;
  createdAt: Date;
  updatedAt: Date;
}

export interface MessageDocument {
  _id: string;
  companyId: string;
  appId: string | null;
  payload: string;
  targets: string[];
  publisherId: string;
  requestId: string;
  createdAt: Date;
  /** The rest is there only when it says something: most messages have none of it. */
  eventType?: string;
  disabledTargets?: string[];
  idempotency?: Idempotency;
  isTest?: true;
  traceparent?: string;
}

export type AttemptDocument = Omit<Attempt, 'startedAtMs'> & { startedAt: Date };

/** Inserted when its first attempt is settled; until then a delivery is only a target of its message. */
export interface DeliveryDocument {
  _id: string;
  messageId: string;
  webhookId: string;
  companyId: string;
  appId: string | null;
  status: DeliveryStatus;
  reason: CancelReason | null;
  /** Number of the last attempt recorded; guards every update. */
  attemptCount: number;
  attempts: AttemptDocument[];
  nextAttemptAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  /** The newest resend; absent when there was none. */
  resend?: ResendMark;
}

export interface ResendMark {
  resendId: string;
  /** Number of the one attempt that it asks for. */
  attemptNumber: number;
  state: 'asked' | 'succeeded' | 'failed';
}

/** What one gateway process has published of what it stored. */
export interface PublisherDocument {
  _id: string;
  heartbeatAt: Date;
  /** Every message of this publisher up to this id was acknowledged by Kafka; '' for none yet. */
  watermark: string;
  /** Since when the oldest unpublished message waits; null when there is none. */
  behindSince: Date | null;
  /** How far the sweeper got on behalf of a publisher that is alive and behind. */
  sweptTo?: string;
}

/** How far the reconciler has checked the messages; one document. */
export interface MessageCheckDocument {
  _id: 'messages';
  /** Of every message up to this id each delivery was recorded when it was checked; '' for none yet. */
  checkedTo: string;
  /** When the newest pass began. */
  begunAt: Date;
}

export interface LeaseDocument {
  _id: string;
  holder: string;
  expiresAt: Date;
}

/** Deliveries that are sent again: one, or all failed ones of a webhook or an app in a span of time. */
export interface ResendDocument {
  _id: string;
  companyId: string;
  /** Null for all of an app, whose parts are resends of one webhook each. */
  webhookId: string | null;
  /** Only there when it is of all webhooks of this app. */
  appId?: string;
  /** Only there in a part: id of the app's resend. */
  partOf?: string;
  /** Bounds of the deliveries' ids: `afterId` is excluded and moves on, `beforeId` is excluded. */
  afterId: string;
  beforeId: string;
  /** Deliveries under way, counted when all of them are settled; at most one page. */
  page: string[];
  status: 'running' | 'done';
  total: number;
  succeeded: number;
  failed: number;
  createdAt: Date;
  updatedAt: Date;
}

/** A deletion under way: its root is gone already, what lies under it follows. */
export interface RemovalDocument {
  _id: string;
  companyId: string;
  kind: 'project' | 'app' | 'webhook';
  rootId: string;
}
