/** A start that cannot succeed until a person changes something; `message` says what and where. */
export class StartupError extends Error {
  override readonly name = 'StartupError';
}

/** The store cannot take writes or answer reads at the moment; the caller may try again. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
}

/** The text of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
