/** A header as the API shows it. */
export interface Header {
  key: string;
  value: string;
}

/** How a delivery proves itself to the endpoint (spec, Authentication). */
export type AuthMethod =
  | { method: 'hmac'; hmacHeader: string; hmacSecret: string }
  | { method: 'basic'; username: string; password: string }
  | { method: 'api_key'; apiKey: string; apiKeyHeader: string };

export const DEFAULT_HMAC_HEADER = 'X-Service-Signature';

/** A destination as the dispatcher needs it. */
export interface Webhook {
  id: string;
  companyId: string;
  /** Null for a global webhook. */
  appId: string | null;
  url: string;
  /** `whsec_` and base64 of 32 bytes; signs the Standard Webhooks header. */
  secret: string;
  customHeaders: Header[];
  authMethod: AuthMethod;
  disabled: boolean;
}
