/**
 * Gateways and browsers reach the local issuer under this name. It is another site than `127.0.0.1`, as real issuers are, so that
 * browsers keep and send cookies as they do there.
 */
export const issuerUrlAt = (port: number): string => `http://localhost:${port}`;
