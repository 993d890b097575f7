import type { StoredAuth } from './auth-draft.ts';
import { authBody, readAuth } from './auth-rules.ts';
import { tlsBody } from './tls-rules.ts';
import { changedFields, readWebhookForm, type WebhookFields } from './webhook-fields.ts';

/** Returns the body of a request that creates a webhook, but for its owner. */
export function bodyIn(form: FormData) {
  return { ...readWebhookForm(form), ...authBody(readAuth(form, null), null), ...tlsBody(form) };
}

/** Returns what a form changes of a webhook. */
export function changesIn(form: FormData, stored: WebhookFields & { authMethod: StoredAuth }) {
  const { authMethod } = stored;
  return {
    ...changedFields(form, stored),
    ...authBody(readAuth(form, authMethod), authMethod),
    ...tlsBody(form),
  };
}
