import type { TunnelResult } from './judge-answer.ts';

/** The `code` of an attempt that failed by a fault of our proxy, before anything was sent to the endpoint. */
export const PROXY_FAULT = 'PROXY_FAULT';

const CODES = {
  fault: PROXY_FAULT,
  refused: 'EGRESS_BLOCKED',
  timeout: 'ATTEMPT_TIMEOUT',
  unreachable: 'ENDPOINT_UNREACHABLE',
} as const;

/** No tunnel was opened. The message contains neither the address nor the password of the proxy. */
export class TunnelError extends Error {
  readonly result: Exclude<TunnelResult, 'opened'>;
  readonly code: string;
  constructor(result: Exclude<TunnelResult, 'opened'>, message: string) {
    super(message);
    this.result = result;
    this.code = CODES[result];
  }
}
