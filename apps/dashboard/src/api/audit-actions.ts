import type { Schemas } from './client.ts';

export type AuditAction = Schemas['AuditEvent']['action'];

/** What was done, in words; in the order in which they are offered. */
export const ACTION_WORDS: Record<AuditAction, string> = {
  'api_key.created': 'API key created',
  'api_key.rotated': 'API key rotated',
  'api_key.revoked': 'API key revoked',
  'signing_key.rotated': 'Signing key rotated',
  'project.created': 'Project created',
  'project.updated': 'Project changed',
  'project.deleted': 'Project deleted',
  'app.created': 'App created',
  'app.updated': 'App changed',
  'app.deleted': 'App deleted',
  'webhook.created': 'Webhook created',
  'webhook.updated': 'Webhook changed',
  'webhook.deleted': 'Webhook deleted',
  'webhook.secret_rotated': 'Secret rotated',
  'webhook.secrets_read': 'Secrets shown',
  'webhook.tested': 'Test message sent',
  'resend.started': 'Resend started',
  'resend.aborted': 'Resend aborted',
  'dashboard_link.created': 'Sign-in link made',
  'dashboard.signed_in': 'Signed in by link',
  'portal_link.created': 'Portal link made',
  'portal_link.revoked': 'Portal link ended',
  'portal.signed_in': 'Portal opened',
  'portal_settings.updated': 'Portal settings changed',
  'company.created': 'Company created',
  'company.suspended': 'Company suspended',
  'company.resumed': 'Company resumed',
  'company.exported': 'Company exported',
  'company.deleted': 'Company deleted',
  'dead_letters.replayed': 'Dead letters replayed',
  'encryption_keys.rotated': 'Encryption keys rotated',
};

export const AUDIT_ACTIONS = Object.keys(ACTION_WORDS) as AuditAction[];
