export interface MessageFields {
  /** The app or the webhook that gets it. */
  to: { appId: string } | { webhookId: string | undefined };
  eventType: string | null;
  tags: readonly string[];
  externalId: string | null;
}

/**
 * Returns the body of a request that sends a message. The payload goes as text: parsed and written again, its spaces and
 * its numbers beyond 2^53 would change.
 */
export function messageBody(
  { to, eventType, tags, externalId }: MessageFields,
  payload: string,
): string {
  const head = JSON.stringify({
    ...to,
    ...(eventType !== null && { eventType }),
    ...(tags.length > 0 && { tags }),
    ...(externalId !== null && { externalId }),
  });
  return `${head.slice(0, -1)},"payload":${payload}}`;
}
