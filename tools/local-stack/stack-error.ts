/** An error that the user can fix. Its message is printed without a stack trace. */
export class StackError extends Error {
  override readonly name = 'StackError';
}

export function messageOf(error: unknown): string {
  if (error instanceof StackError) return error.message;
  // Any other error is a bug, where the stack trace helps more than a short message.
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
