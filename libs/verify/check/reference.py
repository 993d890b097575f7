"""Signs and verifies requests with the reference library of Python.

Reads a JSON list of {secret, id, seconds, body, signature} from the file that is named first, verifies each signature,
and writes the list of its own signatures to standard output. Fails at the first signature that it does not accept.
"""

import json
import sys
from datetime import datetime, timezone

from standardwebhooks import Webhook

signatures = []
with open(sys.argv[1], encoding="utf-8") as file:
    for case in json.load(file):
        webhook = Webhook(case["secret"])
        headers = {
            "webhook-id": case["id"],
            "webhook-timestamp": str(case["seconds"]),
            "webhook-signature": case["signature"],
        }
        webhook.verify(case["body"], headers)
        at = datetime.fromtimestamp(case["seconds"], tz=timezone.utc)
        signatures.append(webhook.sign(msg_id=case["id"], timestamp=at, data=case["body"]))
print(json.dumps(signatures))
