/** A header as the API shows it. */
export interface Header {
  key: string;
  value: string;
}

/** What a webhook with `hmac` may ask for (docs/contract.md C6.15). The first one is the default. */
export const SIGNATURE_ALGORITHMS = ['hmac-sha256', 'ed25519'] as const;
export type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number];

/** How a delivery proves itself to the endpoint (docs/contract.md C9.4 to C9.6 and C9.12). */
export type AuthMethod =
  | {
      method: 'hmac';
      hmacHeader: string;
      hmacSecret: string;
      /** Absent for `hmac-sha256`: earlier versions knew no other. */
      signatureAlgorithm?: 'ed25519';
    }
  | { method: 'basic'; username: string; password: string }
  | { method: 'api_key'; apiKey: string; apiKeyHeader: string };

/** Whether the signing keys of the company sign, and not the secrets of the webhook. */
export function isSignedByCompany(auth: AuthMethod): boolean {
  return auth.method === 'hmac' && auth.signatureAlgorithm === 'ed25519';
}

export const DEFAULT_HMAC_HEADER = 'X-Service-Signature';

/** A secret that was rotated. It signs beside the new one until its grace period ends. */
export interface RetiringSecret {
  secret: string;
  expiresAtMs: number;
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
