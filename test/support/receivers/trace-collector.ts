import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';

const attribute = z.object({
  key: z.string(),
  value: z.union([
    z.object({ stringValue: z.string() }).transform(({ stringValue }) => stringValue),
    z.object({ intValue: z.coerce.number() }).transform(({ intValue }) => intValue),
  ]),
});

const span = z.object({
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  spanId: z.string().regex(/^[0-9a-f]{16}$/),
  parentSpanId: z
    .string()
    .regex(/^[0-9a-f]{16}$/)
    .optional(),
  name: z.string(),
  kind: z.int(),
  startTimeUnixNano: z.string(),
  endTimeUnixNano: z.string(),
  attributes: z.array(attribute),
  status: z.object({ code: z.int(), message: z.string().optional() }),
});

/** An ExportTraceServiceRequest of OTLP 1.7 as JSON, as far as the tests look at it. */
const exportRequest = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: z.array(attribute) }),
      scopeSpans: z.array(z.object({ spans: z.array(span) })),
    }),
  ),
});

export interface CollectedSpan extends Omit<z.infer<typeof span>, 'attributes'> {
  service: string;
  attributes: Record<string, string | number>;
}

export interface TraceCollector {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  url: string;
  spans: CollectedSpan[];
  /** Everything that was received, as text. */
  received: () => string;
  close: () => Promise<void>;
}

/** A collector of OTLP over HTTP on loopback. What is not a valid request gets 400, and fails the test when it is closed. */
export async function startTraceCollector(): Promise<TraceCollector> {
  const spans: CollectedSpan[] = [];
  const bodies: string[] = [];
  const faults: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const read = exportRequest.safeParse(JSON.parse(body));
      bodies.push(JSON.stringify(request.headers), body);
      if (request.url !== '/v1/traces' || !read.success) {
        faults.push(`${request.url ?? ''} ${read.error?.message ?? ''}`);
        response.writeHead(400).end();
        return;
      }
      spans.push(...read.data.resourceSpans.flatMap(spansOf));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    received: () => bodies.join('\n'),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      if (faults.length > 0) throw new Error(`the collector refused ${faults.join('; ')}`);
    },
  };
}

type ResourceSpans = z.infer<typeof exportRequest>['resourceSpans'][number];

function spansOf({ resource, scopeSpans }: ResourceSpans): CollectedSpan[] {
  const service = String(recordOf(resource.attributes)['service.name']);
  return scopeSpans
    .flatMap((scope) => scope.spans)
    .map((each) => ({ ...each, service, attributes: recordOf(each.attributes) }));
}

function recordOf(attributes: z.infer<typeof attribute>[]): Record<string, string | number> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value]));
}
