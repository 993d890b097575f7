/** The service cannot start until a person changes something; `message` says what and where. */
export class StartupError extends Error {
  override readonly name = 'StartupError';
}

/** The store cannot be read or written at the moment. The caller may retry. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
}

/** Returns the text of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
