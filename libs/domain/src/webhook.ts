/** A header as the API shows it. */
export interface Header {
  key: string;
  value: string;
}

/** What a webhook with `hmac` may ask for (docs/contract.md C6.15). The first one is the default. */
export const SIGNATURE_ALGORITHMS = ['hmac-sha256', 'ed25519'] as const;
export type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number];

/** How Posthorn proves itself to a token server (RFC 6749, section 2.3.1). The first one is the default. */
export const CLIENT_AUTHENTICATIONS = ['basic', 'post'] as const;
export type ClientAuthentication = (typeof CLIENT_AUTHENTICATIONS)[number];

/** Where access tokens come from, and with which credentials (RFC 6749, section 4.4). */
export interface OAuth2Client {
  method: 'oauth2';
  tokenUrl: string;
  clientId: string;
  clientSecret: string;
  /** Null: not sent. */
  scope: string | null;
  /** Null: not sent. */
  audience: string | null;
  clientAuthentication: ClientAuthentication;
}

/** How a delivery proves itself to the endpoint (docs/contract.md C9.4 to C9.6, C9.12 and C9.13). */
export type AuthMethod =
  | {
      method: 'hmac';
      hmacHeader: string;
      hmacSecret: string;
      /** Absent for `hmac-sha256`: earlier versions knew no other. */
      signatureAlgorithm?: 'ed25519';
    }
  | { method: 'basic'; username: string; password: string }
  | { method: 'api_key'; apiKey: string; apiKeyHeader: string }
  | OAuth2Client;

/** Whether the signing keys of the company sign, and not the secrets of the webhook. */
export function isSignedByCompany(auth: AuthMethod): boolean {
  return auth.method === 'hmac' && auth.signatureAlgorithm === 'ed25519';
}

/** The characters of what a method holds, for caches with a budget: with `oauth2` they may be 7,000. */
export function charsOfAuth(auth: AuthMethod): number {
  const texts = Object.values(auth) as (string | null)[];
  return texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}

export const DEFAULT_HMAC_HEADER = 'X-Service-Signature';

/** A secret that was rotated. It signs beside the new one until its grace period ends. */
export interface RetiringSecret {
  secret: string;
  expiresAtMs: number;
}

/** What TLS to the endpoint uses instead of the defaults, in PEM (docs/contract.md C6.17). */
export interface EndpointTls {
  /** What proves the sender to the endpoint, its own certificate first; null for nothing. */
  client: { certificate: string; key: string } | null;
  /** The only authorities that may have issued the endpoint's certificate; null for those that Node trusts. */
  ca: string | null;
}

/** Where messages are delivered, with everything that a delivery needs. */
export interface Webhook {
  id: string;
  companyId: string;
  projectId: string;
  /** Null for a global webhook, which has an environment id instead. */
  appId: string | null;
  environmentId: string | null;
  name: string;
  url: string;
  /** `whsec_` and base64 of 32 bytes. Key of the Standard Webhooks signature. */
  secret: string;
  previousSecret: RetiringSecret | null;
  customHeaders: Header[];
  authMethod: AuthMethod;
  /** Null for the defaults. */
  tls: EndpointTls | null;
  /** The event types that it receives; empty for all. */
  eventTypes: string[];
  disabled: boolean;
  /** Null without a limit of its own. */
  rateLimitPerSecond: number | null;
  createdAtMs: number;
  updatedAtMs: number;
}

/**
 * Whether a message to the webhook's app goes to it. A message without an event type goes only to
 * webhooks that receive all. (A message addressed to the webhook itself is always sent.)
 */
export function wantsEvent(
  { eventTypes }: Pick<Webhook, 'eventTypes'>,
  eventType: string | null,
): boolean {
  if (eventTypes.length === 0) return true;
  return eventType !== null && eventTypes.includes(eventType);
}
