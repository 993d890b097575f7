"""Receives the deliveries of a webhook: WEBHOOK_SECRET=whsec_… uvicorn receiver:app --port 9200"""

import os

from fastapi import FastAPI, Request, Response
from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])
# A delivery may come twice, with the same id. A real receiver keeps the ids in its database, under a unique index, in the
# transaction that stores the event.
seen: set[str] = set()

app = FastAPI()


@app.post("/hooks")
async def receive(request: Request) -> Response:
    # The body as bytes: what is signed is the text that arrived, which a parsed and printed body no longer is.
    body = await request.body()
    try:
        event = webhook.verify(body, dict(request.headers))
    except (WebhookVerificationError, ValueError):  # ValueError: no UTF-8, no base64, no JSON
        return Response("The signature is wrong", status_code=401)
    message_id = request.headers["webhook-id"]
    if message_id not in seen:
        seen.add(message_id)
        print(message_id, event, flush=True)
    # Only now: after a success, Posthorn does not send the message again. Long work belongs behind the response.
    return Response(status_code=204)
