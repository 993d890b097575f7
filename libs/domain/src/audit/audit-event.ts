import type { AuditChange } from './changes.ts';

/** Everything that the audit log records (docs/contract.md C17). */
export const AUDIT_ACTIONS = [
  'company.created',
  'company.suspended',
  'company.resumed',
  'company.exported',
  'company.deleted',
  'api_key.created',
  'api_key.rotated',
  'api_key.revoked',
  'signing_key.rotated',
  'dashboard_link.created',
  'dashboard.signed_in',
  'portal_link.created',
  'portal_link.revoked',
  'portal.signed_in',
  'portal_settings.updated',
  'project.created',
  'project.updated',
  'project.deleted',
  'app.created',
  'app.updated',
  'app.deleted',
  'webhook.created',
  'webhook.updated',
  'webhook.deleted',
  'webhook.secret_rotated',
  'webhook.secrets_read',
  'webhook.tested',
  'resend.started',
  'resend.aborted',
  'dead_letters.replayed',
  'encryption_keys.rotated',
] as const;

export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export const AUDIT_TARGETS = [
  'company',
  'apiKey',
  'signingKey',
  'portalLink',
  'project',
  'app',
  'webhook',
  'delivery',
  'resend',
  'deadLetters',
  'encryptionKeys',
] as const;

export type AuditTargetKind = (typeof AUDIT_TARGETS)[number];

/** What an action was done to. `id` is null for several at once, and for one that was not created. */
export interface AuditTarget {
  kind: AuditTargetKind;
  id: string | null;
}

/**
 * A visitor of the portal acts by the link that was opened. `system`: a setting of the operator made Posthorn do it.
 */
export type AuditActor =
  | { kind: 'apiKey'; keyId: string }
  | { kind: 'portalLink'; linkId: string }
  | { kind: 'admin' }
  | { kind: 'system' };

/**
 * `started` is stored before the change. An event that stays so says that nobody knows whether the change was
 * made: its process ended, or the store did not confirm a write. `failed`: it was refused.
 */
export const AUDIT_OUTCOMES = ['started', 'done', 'failed'] as const;

export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

export interface AuditEvent {
  id: string;
  /** NO_COMPANY for what concerns the installation. */
  companyId: string;
  action: AuditAction;
  actor: AuditActor;
  target: AuditTarget;
  /** IP address of the client; null for an administrator and the system. */
  clientAddress: string | null;
  /** Null for an administrator and the system. */
  requestId: string | null;
  outcome: AuditOutcome;
  /** Error code of the response; null unless the change was refused. */
  code: string | null;
  /** Until the event is completed: what was asked for. */
  changes: AuditChange[];
  /** Of a read: how many things were shown; null otherwise. */
  count: number | null;
  createdAtMs: number;
  /** Null while the event is `started`. */
  completedAtMs: number | null;
}

/** The company of events that concern the whole installation. No company has this id. */
export const NO_COMPANY = '';
