// The platform: creates a project, an app and a webhook once, then sends an order every five seconds.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

const { POSTHORN_URL, RECEIVER_URL, FOLDER, INTERVAL_MS = '5000' } = process.env;
const { apiKey } = JSON.parse(readFileSync(join(FOLDER, 'company.json'), 'utf8'));

async function post(path, body, headers = {}) {
  const response = await fetch(POSTHORN_URL + path, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const { success, message, data } = await response.json();
  if (!success) throw new Error(`POST ${path} responds ${response.status}: ${message}`);
  return data;
}

/** Returns the id of the app. The secret is written last, so a start that was cut off begins again. */
async function createWebhook() {
  const project = await post('/projects', { name: 'Shop' });
  const app = await post('/apps', { name: 'First customer', projectId: project.id });
  const webhook = await post('/webhooks', { appId: app.id, url: RECEIVER_URL });
  writeFileSync(join(FOLDER, 'app'), app.id);
  writeFileSync(join(FOLDER, 'secret'), webhook.secret);
}

if (!existsSync(join(FOLDER, 'secret'))) await createWebhook();
const appId = readFileSync(join(FOLDER, 'app'), 'utf8');
for (let number = 1; ; number += 1) {
  const order = { appId, eventType: 'order.paid', payload: { number, at: new Date() } };
  // With the key, a request may be repeated after a lost response, and one message is made.
  const key = { 'Idempotency-Key': `order-${Date.now()}` };
  const { id } = await post('/webhook-messages', order, key);
  console.log(`order ${number} is message ${id}`);
  await setTimeout(Number(INTERVAL_MS));
}
