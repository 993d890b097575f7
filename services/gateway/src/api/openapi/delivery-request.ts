import { exampleId } from '../../http/answers/fields.ts';
import type { JsonSchema } from './json-schemas.ts';

const SIGNATURE = '9b1c1e0d5f3a4c7d8e2f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5';

const DESCRIPTION = `What an endpoint receives. The body is the \`payload\` of the message, byte for byte.

Every delivery has the headers of [Standard Webhooks](https://www.standardwebhooks.com), the webhook's \`customHeaders\`, and one of:

| \`authMethod\` | header |
| --- | --- |
| \`hmac\` | \`X-Service-Signature\`, or the one that \`hmacHeader\` names: hex HMAC SHA-256 of the body; the key is the text of \`hmacSecret\`, which is the webhook's \`secret\` unless given |
| \`basic\` | \`Authorization: Basic …\`: base64 of user name, colon, password |
| \`apiKey\` | the one that \`apiKeyHeader\` names, with the value of \`apiKey\` |

Attempts are made at once, then 5 seconds, 5 minutes, 30 minutes, 2 hours, 5 hours and 10 hours after the end of the one before. A delivery may come twice; its \`webhook-id\` stays the same.`;

function header(name: string, description: string, example: string, isAlways = true): JsonSchema {
  const schema = { type: 'string', examples: [example] };
  return { in: 'header', name, required: isAlways, description, schema };
}

const HEADERS = [
  header('webhook-id', 'Id of the message: the same in every attempt', exampleId('msg')),
  header('webhook-timestamp', 'Seconds since 1970 at this attempt', '1769851800'),
  header(
    'webhook-signature',
    '`v1,` and base64 HMAC SHA-256 of `{webhook-id}.{webhook-timestamp}.{body}`; the key is what the base64 of the `secret` after `whsec_` stands for. Two, with a space between, while a rotated secret is still good',
    'v1,Ce8pWNEdXUsSJJN4nXg1cWN0PN0Yd0y1Zz8Y1w9V2dM=',
  ),
  header('User-Agent', 'Posthorn and its version', 'Posthorn/0.1.0'),
  header('X-Service-Signature', 'With `hmac`; the name is `hmacHeader`', SIGNATURE, false),
  header('Authorization', 'With `basic`', 'Basic cG9zdGhvcm46c2VjcmV0', false),
  header(
    'X-Endpoint-Key',
    'With `apiKey`; the name is `apiKeyHeader`',
    'a long random text',
    false,
  ),
];

/** The request that Posthorn sends (OpenAPI 3.1, `webhooks`). */
export const DELIVERY_REQUEST: JsonSchema = {
  post: {
    operationId: 'delivery',
    summary: 'A delivery to your endpoint',
    description: DESCRIPTION,
    security: [],
    parameters: HEADERS,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: { type: 'object' },
          example: { order: 17, total: '12.50' },
        },
      },
    },
    responses: {
      '2XX': { description: 'Delivered. The status decides, whatever the body.' },
      default: {
        description:
          'Failed and sent again later. So is no answer within 15 seconds; redirects are not followed.',
      },
    },
  },
};
