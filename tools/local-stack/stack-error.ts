/** What the person at the terminal can act on: printed as it is, without a stack trace. */
export class StackError extends Error {
  override readonly name = 'StackError';
}

export function messageOf(error: unknown): string {
  if (error instanceof StackError) return error.message;
  // Anything else is a fault of ours, where the stack helps more than a short message.
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
