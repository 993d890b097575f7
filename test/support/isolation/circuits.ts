import type { ApiClient } from '../process/api-client.ts';
import { eventually } from '../time/eventually.ts';
import type { Posthorn } from '../process/posthorn.ts';
import { sendMany, type Sent } from '../process/traffic.ts';

/** The volume that a circuit needs before it opens. */
const ENOUGH = 10;

/** Sends to an endpoint that fails until its circuit is open; answers what was sent. */
export async function openCircuit({ api }: Posthorn, webhookId: string): Promise<Sent[]> {
  const sent = await sendMany(api, [webhookId], ENOUGH);
  await eventually('an open circuit', async () => (await circuitOf(api, webhookId)) === 'open');
  return sent;
}

/** As the health of the webhook shows it. */
export async function circuitOf(api: ApiClient, webhookId: string): Promise<string> {
  const { body } = await api.get(`/api/v1/webhooks/${webhookId}/health`);
  return (body.data as { circuit: string }).circuit;
}
