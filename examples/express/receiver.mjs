// Receives the deliveries of a webhook: WEBHOOK_SECRET=whsec_… node receiver.mjs
import express from 'express';
import { setTimeout } from 'node:timers';
import { Webhook } from 'standardwebhooks';

const { WEBHOOK_SECRET = '', PORT = '9200', HOST = '127.0.0.1' } = process.env;
const webhook = new Webhook(WEBHOOK_SECRET);
// A delivery may come twice, with the same id. A real receiver keeps the ids in its database, under a unique index, in the
// transaction that stores the event.
const seen = new Set();

const app = express();
// The body as bytes: what is signed is the text that arrived, which a parsed and printed body no longer is. A payload has up
// to 256 KiB; by default Express takes 100.
app.post('/hooks', express.raw({ type: '*/*', limit: '300kb' }), (request, response) => {
  let event;
  try {
    event = webhook.verify(request.body, request.headers);
  } catch {
    response.status(401).send('The signature is wrong');
    return;
  }
  const id = request.get('webhook-id');
  if (!seen.has(id)) {
    seen.add(id);
    console.log(id, JSON.stringify(event));
  }
  // Only now: after a success, Posthorn does not send the message again. Long work belongs behind the response.
  response.status(204).end();
});

const server = app.listen(Number(PORT), HOST, () => {
  console.log(`Listening at http://${HOST}:${server.address().port}/hooks`);
});
process.once('SIGTERM', () => {
  server.close();
  // A sender that keeps its connection busy would keep the process.
  setTimeout(() => server.closeAllConnections(), 5_000).unref();
});
