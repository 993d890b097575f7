import { encodedUrl } from '@posthorn/domain/request/encoded-url.ts';
import type {
  AuthMethod,
  EndpointTls,
  Header,
  RetiringSecret,
  Webhook,
} from '@posthorn/domain/webhook.ts';
import { SealedValueError, type Binding, type Vault } from '../../vault/vault.ts';
import type { WebhookDocument } from '../documents/documents.ts';
import { sealedFields, type SealedFields } from '../documents/sealed-fields.ts';

type SealedField = keyof SealedFields;

export function sealWebhook(vault: Vault, webhook: Webhook): WebhookDocument {
  const { id, createdAtMs, updatedAtMs, ...others } = webhook;
  const { secret, previousSecret, authMethod, customHeaders, tls, ...open } = others;
  const seal = (field: SealedField, text: string) => vault.seal(text, bindingOf(webhook, field));
  const sealed = {
    secret: seal('secret', secret),
    previousSecret: previousSecret && seal('previousSecret', JSON.stringify(previousSecret)),
    authMethod: seal('authMethod', JSON.stringify(authMethod)),
    customHeaders: seal('customHeaders', JSON.stringify(customHeaders)),
    ...(tls && { tls: seal('tls', JSON.stringify(tls)) }),
  };
  const keyId = vault.keyIdOf(sealed.secret);
  const dates = { createdAt: new Date(createdAtMs), updatedAt: new Date(updatedAtMs) };
  return { _id: id, ...open, sealed, keyId, ...dates };
}

/** Throws SealedValueError unless every value was sealed for this webhook. */
export function openWebhook(vault: Vault, document: WebhookDocument): Webhook {
  const { secret, previousSecret, authMethod, customHeaders, tls } = sealedFieldsOf(document);
  const read = (field: SealedField, text: string) =>
    vault.open(text, bindingOf(placeOf(document), field));
  return {
    ...unsealedOf(document),
    // A value that opens was written by sealWebhook, so its JSON has the right shape.
    secret: read('secret', secret),
    previousSecret:
      previousSecret === null
        ? null
        : (JSON.parse(read('previousSecret', previousSecret)) as RetiringSecret),
    authMethod: withEncodedUrl(JSON.parse(read('authMethod', authMethod)) as AuthMethod),
    customHeaders: JSON.parse(read('customHeaders', customHeaders)) as Header[],
    tls: tls === undefined ? null : (JSON.parse(read('tls', tls)) as EndpointTls),
  };
}

function unsealedOf(document: WebhookDocument): Omit<Webhook, SealedField> {
  const { _id: id, companyId, projectId, appId, environmentId, name, url } = document;
  const { eventTypes, disabled, rateLimitPerSecond, createdAt, updatedAt } = document;
  const owner = { companyId, projectId, appId, environmentId };
  const dates = { createdAtMs: createdAt.getTime(), updatedAtMs: updatedAt.getTime() };
  return {
    id,
    ...owner,
    name,
    url: encoded(url),
    eventTypes,
    disabled,
    rateLimitPerSecond,
    ...dates,
  };
}

/** Earlier versions stored URLs as `URL` encodes them, with characters such as `|` as they are. */
function encoded(url: string): string {
  const parsed = URL.parse(url);
  return parsed ? encodedUrl(parsed) : url;
}

function withEncodedUrl(auth: AuthMethod): AuthMethod {
  return auth.method === 'oauth2' ? { ...auth, tokenUrl: encoded(auth.tokenUrl) } : auth;
}

/** The database may hold anything: values of the wrong shape are reported like values that do not open. */
function sealedFieldsOf({ _id, sealed }: WebhookDocument): SealedFields {
  const fields = sealedFields.safeParse(sealed);
  if (fields.success) return fields.data;
  throw new SealedValueError(`webhook ${_id} has no sealed values`, null);
}

type Place = Pick<Webhook, 'id' | 'companyId' | 'url'>;

const placeOf = ({ _id: id, companyId, url }: WebhookDocument): Place => ({ id, companyId, url });

function bindingOf({ id: ownerId, companyId, url }: Place, field: SealedField): Binding {
  return { companyId, ownerId, field, target: targetOf(url) };
}

/** Scheme, host and port: a path may be changed, but the secrets may go nowhere else. */
function targetOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}
