import type { ApiClient } from '../api/api-client.ts';
import { eventually } from '../time/eventually.ts';
import type { Posthorn } from '../process/posthorn.ts';
import { sendMany, type Sent } from '../process/traffic.ts';

/** A circuit opens only after this many attempts. */
const MIN_ATTEMPTS = 10;

/** Sends to a failing endpoint until its circuit is open. Returns what was sent. */
export async function openCircuit({ api }: Posthorn, webhookId: string): Promise<Sent[]> {
  const sent = await sendMany(api, [webhookId], MIN_ATTEMPTS);
  await eventually('an open circuit', async () => (await circuitOf(api, webhookId)) === 'open');
  return sent;
}

/** Returns the state of the circuit in the health of the webhook. */
export async function circuitOf(api: ApiClient, webhookId: string): Promise<string> {
  const { body } = await api.get(`/api/v1/webhooks/${webhookId}/health`);
  return (body.data as { circuit: string }).circuit;
}
