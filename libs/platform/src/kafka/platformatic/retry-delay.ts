/** Returns how long the client waits before a retry, in milliseconds: 100, 200, 400 … up to 1,000. */
export function retryDelayMs(_client: unknown, _operation: string, attempt: number): number {
  return Math.min(100 * 2 ** (attempt - 1), 1_000);
}
