import { MAX_BODY_BYTES } from '@posthorn/domain/message/message.ts';
import { createGatewayClient } from '../../load/gateway-client.ts';
import { closedLoop, type Load, openLoop } from '../../load/loops.ts';
import type { Phase } from '../../measure/measure-phase.ts';
import type { Bench } from '../../scenario.ts';
import { CONNECTIONS } from '../warm-up.ts';
import type { HotEndpoint } from './sizes.ts';
import type { OverloadWatch } from './watch.ts';

export interface LoadDeps {
  bench: Bench;
  watch: OverloadWatch;
  seconds: number;
}

/**
 * The time for the rest of a phase to arrive. The run is limited; what is slower than this counts as
 * missing.
 */
const PATIENCE_MS = 45_000;

/** With the JSON around it, a payload of this size is just below the largest body that the API accepts. */
export const LARGE_PAYLOAD_BYTES = MAX_BODY_BYTES - 256;
const LARGE_TAKES_MS = 1_000;

export function loadWithConnections(
  { bench, watch, seconds }: LoadDeps,
  load: Load,
  connections: number,
): Promise<Phase> {
  const name = `closed loop, ${connections} connections`;
  return watch.during(name, () =>
    bench.measure({
      name,
      patienceMs: PATIENCE_MS,
      load: () => closedLoop(load, { connections, seconds }),
    }),
  );
}

export async function loadHotEndpoint(
  { bench, watch, seconds }: LoadDeps,
  { takesMs, ratePerSecond }: HotEndpoint,
): Promise<Phase> {
  const behaviourOf = () => ({ answersAfterMs: takesMs });
  const load = await bench.openEndpoints({ count: 1, behaviourOf });
  const name = `one endpoint that takes ${takesMs} ms, ${ratePerSecond}/s`;
  return watch.during(name, () =>
    bench.measure({
      name,
      patienceMs: PATIENCE_MS,
      load: () => openLoop(load, { ratePerSecond, seconds }),
    }),
  );
}

/** Sends the largest payloads, to endpoints that take a second for each. */
export async function loadLargePayloads(
  { bench, watch, seconds }: LoadDeps,
  { endpoints, ratePerSecond }: { endpoints: number; ratePerSecond: number },
): Promise<Phase> {
  const behaviourOf = () => ({ answersAfterMs: LARGE_TAKES_MS });
  const load = await bench.openEndpoints({ count: endpoints, behaviourOf });
  const client = createGatewayClient(bench.stack.credentials, {
    connections: CONNECTIONS,
    payloadBytes: LARGE_PAYLOAD_BYTES,
  });
  const large = { ...load, send: client.sendToWebhook };
  const name = `payloads of ${LARGE_PAYLOAD_BYTES} bytes, ${ratePerSecond}/s, ${CONNECTIONS} connections`;
  try {
    return await watch.during(name, () =>
      bench.measure({
        name,
        patienceMs: PATIENCE_MS,
        load: () => openLoop(large, { ratePerSecond, seconds }),
      }),
    );
  } finally {
    await client.close();
  }
}
