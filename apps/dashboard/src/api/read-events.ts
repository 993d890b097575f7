export interface ServerEvent {
  event: string;
  data: string;
}

/** An attempt has less than 1 KiB. What a proxy sends in place of the stream may have no end. */
const MAX_EVENT_CHARS = 65_536;

/**
 * Yields the events of a `text/event-stream`. `EventSource` cannot send the header of the session. Throws for an event
 * of more than 64 Ki characters.
 */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  let text = '';
  for await (const chunk of chunksOf(body)) {
    text += chunk.replaceAll('\r', '');
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    if (text.length > MAX_EVENT_CHARS) throw new Error('The stream has an event without an end.');
    for (const block of blocks) yield parseEvent(block);
  }
}

/** Not every browser iterates over a stream by itself. */
async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield decoder.decode(value, { stream: true });
  }
}

function parseEvent(block: string): ServerEvent {
  const fields = block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line));
  const valuesOf = (name: string): string[] =>
    fields.flatMap((field) => (field?.[1] === name ? [field[2] ?? ''] : []));
  return { event: valuesOf('event').at(-1) ?? 'message', data: valuesOf('data').join('\n') };
}
